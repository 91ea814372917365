#pragma once
// The database transaction in which a handler works. The library opened it (READ COMMITTED) and wrote the
// message's dedup row into it; the library commits it when the handler returns, and rolls it back when the
// handler throws. So the handler's writes and "this message is done" are one fact.
//
// A batch shares one database transaction, and its messages must not reach one another. A handler's savepoints
// are out of reach of the messages behind it. One that uses SET LOCAL, set_config(), SET CONSTRAINTS, a temporary
// table, DO, CALL, DECLARE or native() is given a transaction of its own, and so is each message of its Inbox from
// then on. What outlives the transaction (SET without LOCAL, LISTEN, PREPARE, a cursor WITH HOLD, an advisory
// lock of the session) is refused with std::logic_error. Not seen, and therefore the service's affair: what a
// function of its own does inside to settings and temporary tables.
//
// A handler must not COMMIT or ROLLBACK; savepoints are its own affair, as long as it rolls back to one after
// an error: a transaction that is broken when the handler returns counts as a failure of the handler,
// whatever it caught. Lifecycle: lives for one call of the handler. Thread: the handler's.

#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outbox/message.hpp"
#include "outbox/uuid.hpp"

struct pg_conn;

namespace outbox {

/// PostgreSQL refused a statement, or the connection broke. Let it pass through the handler: the library
/// knows which states are to be tried again.
class SqlError : public std::runtime_error {
 public:
  enum class Repeat { may_help, is_useless };
  SqlError(std::string sqlstate, const std::string& message, Repeat repeat)
      : std::runtime_error(message), sqlstate_(std::move(sqlstate)), repeat_(repeat) {}
  /// Five characters, or empty where the connection broke before PostgreSQL could say one.
  [[nodiscard]] const std::string& sqlstate() const { return sqlstate_; }
  /// A deadlock, a lost connection and the like: the whole transaction may succeed next time.
  [[nodiscard]] bool transient() const { return repeat_ == Repeat::may_help; }

 private:
  std::string sqlstate_;
  Repeat repeat_;
};

/// One parameter of a statement. Values travel as text whose type the server infers ($1 in `balance + $1` is
/// a number), std::span<const std::byte> as bytea; none is ever spliced into the SQL.
class Param {
 public:
  Param(std::nullopt_t) {}
  Param(std::nullptr_t) {}
  Param(bool value) : text_(value ? "t" : "f") {}
  template <class T>
    requires(std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>)
  Param(T value) : text_(std::to_string(value)) {}
  Param(double value);
  Param(const char* value) : Param(std::string_view(value)) {}
  Param(const std::string& value) : Param(std::string_view(value)) {}
  /// Errors: a NUL inside: std::invalid_argument, since PostgreSQL's text can't hold one (pass bytes).
  Param(std::string_view value);
  Param(std::span<const std::byte> value);
  Param(const Uuid& value) : text_(to_string(value)) {}
  Param(std::chrono::sys_time<std::chrono::microseconds> value);
  template <class T>
  Param(const std::optional<T>& value) : Param(value ? Param(*value) : Param(std::nullopt)) {}

  [[nodiscard]] const std::optional<std::string>& value() const { return text_; }
  [[nodiscard]] bool is_bytes() const { return bytes_; }

 private:
  std::optional<std::string> text_;
  bool bytes_ = false;
};

/// The rows a statement gave, as text. Views live as long as a copy of the Rows. An index out of range or a
/// value that does not read as the type asked for throws std::out_of_range or std::invalid_argument.
class Rows {
 public:
  Rows() = default;
  Rows(std::shared_ptr<const void> result, int size, std::int64_t affected);

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// Rows inserted, updated, deleted or selected.
  [[nodiscard]] std::int64_t affected() const { return affected_; }
  /// nullopt: NULL.
  [[nodiscard]] std::optional<std::string_view> text(int row, int column) const;
  /// The value as a number, a bool ("t"/"f") or a string. NULL: std::invalid_argument.
  template <class T>
  [[nodiscard]] T get(int row, int column) const;

 private:
  std::shared_ptr<const void> result_;
  int size_ = 0;
  std::int64_t affected_ = 0;
};

/// What a statement that is sent must come to, so that its message is done.
struct Affects {
  std::int64_t rows = 1;  ///< inserted, updated or deleted by it, neither more nor fewer
  /// Why the message is rejected otherwise, as by Reject; empty: it is tried again, as after an exception.
  std::string else_reject{};
};

using HeaderList = std::vector<std::pair<std::string, std::string>>;

class Transaction {
 public:
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  virtual ~Transaction() = default;

  /// One statement, with a plan that the connection keeps under its text: values belong into parameters.
  /// Errors: SqlError.
  template <class... Values>
  Rows exec(std::string_view sql, const Values&... values) {
    return exec_params(sql, {Param(values)...});
  }
  [[nodiscard]] virtual Rows exec_params(std::string_view sql, std::vector<Param> params) = 0;

  /// One statement whose answer nobody waits for: the server works while the handler goes on, also with the
  /// next message of its batch, so that a batch costs a round trip and not one for each statement. It is
  /// executed in its place, before whatever this transaction executes later, with a plan that the connection
  /// keeps. Where it fails, its message fails as if the handler had let the SqlError through: the batch is
  /// rolled back and redone in parts, and nothing sent or executed behind it counts. A later call of exec(),
  /// publish(), advance() or native() waits for it and throws. Errors: std::logic_error where it would end
  /// the transaction. COPY needs native().
  template <class... Values>
  void send(std::string_view sql, const Values&... values) {
    send_params(sql, {Param(values)...}, std::nullopt);
  }
  /// Likewise, where the money depends on how many rows it finds.
  template <class... Values>
  void send(const Affects& expected, std::string_view sql, const Values&... values) {
    send_params(sql, {Param(values)...}, expected);
  }
  virtual void send_params(std::string_view sql, std::vector<Param> params,
                           std::optional<Affects> expected) = 0;

  /// A message of the service's own: inserted into its outbox table in this transaction, so that it is sent
  /// if and only if the handler's writes are committed. Answers its msg_id. `body` must fit the table's body
  /// type (json by default); nullopt is a tombstone. Errors: SqlError, such as a body that is no json.
  virtual Uuid publish(std::string_view topic, std::optional<std::string_view> key,
                       std::optional<std::string_view> body, const HeaderList& headers = {}) = 0;

  /// Raises the version of one of the business's own things, such as "order-4711", and answers true; answers
  /// false, and changes nothing, where that version or a later one is there already. Kept for each consumer
  /// in inbox_version. A handler that has nothing to do then throws Stale, so that it is counted as such, or
  /// returns. Errors: SqlError; an entity must have 1 to 1,000 bytes.
  [[nodiscard]] virtual bool advance(std::string_view entity, std::int64_t version) = 0;

  /// Calls `work` once the transaction is committed, on the handler's thread; never where it is rolled back.
  /// For what may be lost or is repeated elsewhere (a cache, a log): a process that dies in between never
  /// calls it. What it throws is ignored, since nothing can be undone any more. A call that must happen is a
  /// row in this transaction, or a publish().
  virtual void after_commit(std::function<void()> work) = 0;

  /// libpq's handle, for what exec can't do (COPY, pipeline mode, another library). Leave it idle, in the
  /// transaction, and ask for it again after send().
  [[nodiscard]] virtual pg_conn* native() = 0;

 protected:
  Transaction() = default;
};

template <class T>
T Rows::get(int row, int column) const {
  const auto value = text(row, column);
  if (!value) throw std::invalid_argument("outbox::Rows: the value is NULL");
  if constexpr (std::same_as<T, bool>) {
    return *value == "t";
  } else if constexpr (std::is_arithmetic_v<T>) {
    T number{};
    const auto end = value->data() + value->size();
    if (const auto [at, error] = std::from_chars(value->data(), end, number);
        error != std::errc{} || at != end)
      throw std::invalid_argument("outbox::Rows: not such a number: " + std::string(*value));
    return number;
  } else {
    return T(*value);
  }
}

}  // namespace outbox
