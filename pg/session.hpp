#pragma once
// A blocking connection: for operators' commands, the consumer library and tests. The relay uses Connection
// instead. Lifecycle: connect() → exec() … → destroyed. One thread at a time. A broken session stays broken:
// connect again.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "pg/params.hpp"
#include "pg/rows.hpp"

struct pg_conn;

namespace outbox::pg {

enum class Format { text, binary };

struct ConnectOptions {
  std::string uri;  ///< libpq URI or keyword=value string; what it sets wins over the defaults below
  std::string application_name = "outbox";
  Millis connect_timeout{5000};
  /// With keepalives (idle 5 s, interval 2 s, count 3), so that a dead peer is noticed.
  Millis tcp_user_timeout{10'000};
};

/// The libpq keyword/value pairs for `options`: uri expanded, defaults filled in where the uri is silent.
/// Errors: the uri does not parse: fatal, with libpq's reason and never the password.
[[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> connection_keywords(
    const ConnectOptions& options);

/// Whether two uris lead to the same place and differ in nothing but who connects and whom it trusts: user
/// (where both name the database), passwords, certificates. False where one does not parse.
[[nodiscard]] bool differ_in_credentials_alone(const std::string& uri, const std::string& other);

class Session {
 public:
  /// Errors: unreachable, starting up, too many connections: retry; wrong password, no such database: fatal.
  [[nodiscard]] static Result<Session> connect(const ConnectOptions& options);

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// One statement with parameters. Outside a transaction it commits itself: see commit() for in_doubt. exec_prepared() keeps a named plan on the server under the statement's
  /// text; behind a pooler it keeps none, since the next client of the same server process would meet it.
  [[nodiscard]] Result<Rows> exec(std::string_view sql, const Params& params = {},
                                  Format results = Format::text);
  [[nodiscard]] Result<Rows> exec_prepared(std::string_view sql, const Params& params,
                                           Format results = Format::binary);
  /// Gives a statement to the server without waiting for its answer, with a plan kept as exec_prepared()
  /// does. Errors: only of a broken connection; the statement's own come with receive(), before which nothing
  /// but send() may be called. Blocks: while the server takes in less than it is sent.
  [[nodiscard]] Status send(std::string_view sql, const Params& params);
  /// What was sent since the last receive().
  struct Received {
    std::vector<Rows> rows;        ///< of the statements that succeeded, in their order
    std::optional<Error> error{};  ///< of the one behind them; what was sent after it was not executed
  };
  /// Waits for all of it.
  [[nodiscard]] Received receive();
  /// Statements sent and not yet received.
  [[nodiscard]] std::size_t sent() const;

  /// Several statements separated by ';' and no parameters (migrations). One implicit transaction.
  [[nodiscard]] Status exec_script(std::string_view sql);

  /// Commits, after the statements of `before` (as exec_script() takes them) in the same round trip.
  /// Errors: rolled back, since a statement had failed and the caller went on: fatal; the reply was lost, or
  /// the wait for a synchronous standby was cancelled, which PostgreSQL calls a warning: in_doubt.
  [[nodiscard]] Status commit(std::string_view before = {});

  /// BEGIN, body, commit(). An Error from body rolls back and is returned.
  [[nodiscard]] Status transaction(const std::function<Status(Session&)>& body);

  [[nodiscard]] bool broken() const;  ///< the server or the network closed it
  [[nodiscard]] bool in_transaction() const;
  [[nodiscard]] int server_version() const;  ///< 150018 and the like
  /// Of the process that the connection was made to: behind a pooler it is not the one that answers.
  [[nodiscard]] int backend_pid() const;
  /// A pooler stands between: each transaction may meet another server process, so that nothing outlives it
  /// (plans, SET, LISTEN, advisory locks and cursors of the session).
  [[nodiscard]] bool pooled() const;
  [[nodiscard]] pg_conn* native() const;
  /// From the next statement on: an answer that takes longer breaks the session, and the error is as of a
  /// lost connection. Zero, as at first: answers are waited for without an end. exec() and exec_prepared()
  /// only.
  void answer_within(Millis patience);
  /// Asks the server to cancel what runs now. Any thread. Returns at once, whether the server answers or not.
  void cancel() noexcept;
  /// Ends the connection under whoever waits for an answer, and breaks the session: for a server that is
  /// silent. Any thread. Returns at once.
  void abandon() noexcept;

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The libpq that this program runs with: "15.20".
[[nodiscard]] std::string libpq_version();

}  // namespace outbox::pg
