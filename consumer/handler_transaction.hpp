#pragma once
// outbox::Transaction on a pg::Session, and the judgement of what a handler left behind. Lives for one
// database transaction, which several messages of a batch may share.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/statements.hpp"
#include "outbox/handler.hpp"
#include "pg/session.hpp"

namespace outbox {

/// Idle, in no transaction, not in pipeline mode: fit for the next transaction.
[[nodiscard]] bool is_clean(const pg::Session& session);

class HandlerTransaction final : public Transaction {
 public:
  HandlerTransaction(pg::Session& session, const Statements& statements, std::string_view consumer,
                     std::string& body_type)
      : session_(session), statements_(statements), consumer_(consumer), body_type_(body_type) {}

  [[nodiscard]] Rows exec_params(std::string_view sql, std::vector<Param> params) override;
  Uuid publish(std::string_view topic, std::optional<std::string_view> key,
               std::optional<std::string_view> body, const HeaderList& headers) override;
  [[nodiscard]] bool advance(std::string_view entity, std::int64_t version) override;
  void after_commit(std::function<void()> work) override { after_commit_.push_back(std::move(work)); }
  [[nodiscard]] pg_conn* native() override { return session_.native(); }

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
  /// Between two handlers: what the one before it caught and undid is forgotten.
  void forget_error() { first_error_.reset(); }
  /// What handlers left for this moment, in their order.
  void run_after_commit() noexcept;

 private:
  pg::Rows checked(Result<pg::Rows> rows);

  pg::Session& session_;
  const Statements& statements_;
  std::string_view consumer_;
  std::string& body_type_;  ///< of the outbox table; looked up once a session, empty until then
  std::optional<Error> first_error_;
  std::vector<std::function<void()>> after_commit_;
};

}  // namespace outbox
