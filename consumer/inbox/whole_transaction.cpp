#include "consumer/inbox/whole_transaction.hpp"

#include <libpq-fe.h>

#include <string_view>

#include "base/crash_point.hpp"

namespace outbox {
namespace {

struct RollbackAtExit {
  pg::Session& session;
  ~RollbackAtExit() {
    if (!session.broken() && session.in_transaction()) static_cast<void>(session.exec("ROLLBACK"));
  }
};

Status commit(pg::Session& session) {
  const auto done = session.exec("COMMIT");
  if (!done) return failure(done.error());
  // PostgreSQL answers a COMMIT of a broken transaction with ROLLBACK and no error.
  if (std::string_view(PQcmdStatus(const_cast<pg_result*>(done->native()))) == "COMMIT") return {};
  return failure(Disposition::quarantine, "the transaction was rolled back at its COMMIT");
}

}  // namespace

RolledBack not_ours(const Error& error) {
  Failure failure = failure_of(error);
  if (failure.kind == Failure::Kind::message) failure.kind = Failure::Kind::environment;
  return {std::move(failure), std::nullopt};
}

BatchResult in_transaction(pg::Session& session, const Statements& statements,
                           const std::function<BatchResult()>& work) {
  const RollbackAtExit at_exit{session};
  if (const Status begun = session.exec_script(statements.begin); !begun) return not_ours(begun.error());
  BatchResult result = work();
  if (std::holds_alternative<RolledBack>(result)) return result;
  crash_here(CrashPoint::consumer_before_commit);
  if (const Status committed = commit(session); !committed)
    return RolledBack{failure_of(committed.error()), std::nullopt};
  crash_here(CrashPoint::consumer_after_commit);
  return result;
}

}  // namespace outbox
