#pragma once
// outbox::Transaction on a pg::Session, and the judgement of what a handler left behind. Lives for one
// database transaction, which several messages of a batch may share.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/core/failure.hpp"
#include "consumer/inbox/statements.hpp"
#include "outbox/handler.hpp"
#include "pg/session.hpp"

namespace outbox {

/// Idle, in no transaction, not in pipeline mode: fit for the next transaction.
[[nodiscard]] bool is_clean(const pg::Session& session);

/// Whether other messages' handlers work in the same database transaction.
enum class Company { alone, shared };

class HandlerTransaction final : public Transaction {
 public:
  HandlerTransaction(pg::Session& session, const Statements& statements, std::string_view consumer,
                     std::string& body_type, Company company)
      : session_(session),
        statements_(statements),
        consumer_(consumer),
        body_type_(body_type),
        company_(company) {}

  [[nodiscard]] Rows exec_params(std::string_view sql, std::vector<Param> params) override;
  void send_params(std::string_view sql, std::vector<Param> params, std::optional<Affects> expected) override;
  Uuid publish(std::string_view topic, std::optional<std::string_view> key,
               std::optional<std::string_view> body, const HeaderList& headers) override;
  [[nodiscard]] bool advance(std::string_view entity, std::int64_t version) override;
  void after_commit(std::function<void()> work) override { after_commit_.push_back(std::move(work)); }
  [[nodiscard]] pg_conn* native() override;

  enum class State {
    usable,  ///< open, nothing failed or the failure was rolled back to a savepoint
    failed,  ///< open, but a statement failed: it can only be rolled back
    ended,   ///< a handler committed or rolled it back itself
    lost,    ///< the connection is gone
    unfit,   ///< a handler left the connection busy or in pipeline mode: it must be given up
  };
  [[nodiscard]] State state() const;
  /// The first thing that PostgreSQL said was wrong, whatever the handler made of it.
  [[nodiscard]] const std::optional<Error>& first_error() const { return first_error_; }
  /// The handler for message number `message` of the batch is next: what is sent from now on is that one's,
  /// and what the one before it caught and undid is forgotten.
  void begin(std::size_t message);
  /// The handler returned: its savepoints are out of reach of those behind it. Nothing is waited for.
  void end();
  /// The handler did, in company, what would reach the messages behind it and can't be undone alone (SET
  /// LOCAL, a temporary table, native()): it needs a transaction of its own.
  [[nodiscard]] bool needs_solitude() const { return needs_solitude_; }

  /// A statement that was sent and did not come to what it should. Nothing else is executed then.
  struct SentFailure {
    std::size_t message = 0;  ///< that sent it
    Failure failure;
    std::optional<Error> error{};  ///< where PostgreSQL refused it
  };
  /// Waits for what was sent, and keeps the first failure of it.
  const std::optional<SentFailure>& receive();
  [[nodiscard]] const std::optional<SentFailure>& sent_failure() const { return sent_failure_; }
  /// What handlers left for this moment, in their order.
  void run_after_commit() noexcept;

 private:
  struct Sent {
    std::size_t message;
    std::optional<Affects> expected;
  };
  pg::Rows checked(Result<pg::Rows> rows);
  pg::Rows exec_behind_sent(std::string_view sql, const pg::Params& params);
  pg::Session::Received take();
  void note(const Sent& sent, const pg::Rows& rows);
  void require_sent();
  void admit(std::string_view sql);
  void require_solitude();

  pg::Session& session_;
  const Statements& statements_;
  std::string_view consumer_;
  std::string& body_type_;  ///< of the outbox table; looked up once a session, empty until then
  Company company_;
  bool guarded_ = false;  // a savepoint of ours lies below the handler's
  bool needs_solitude_ = false;
  std::optional<Error> first_error_;
  std::size_t message_ = 0;
  std::vector<Sent> sent_;  ///< and not yet received
  std::optional<SentFailure> sent_failure_;
  std::vector<std::function<void()>> after_commit_;
};

}  // namespace outbox
