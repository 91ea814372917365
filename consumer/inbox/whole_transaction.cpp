#include "consumer/inbox/whole_transaction.hpp"

#include "base/crash_point.hpp"

namespace outbox {
namespace {

struct RollbackAtExit {
  pg::Session& session;
  ~RollbackAtExit() {
    if (!session.broken() && session.in_transaction()) static_cast<void>(session.exec("ROLLBACK"));
  }
};

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
  const auto* outcomes = std::get_if<std::vector<Outcome>>(&result);
  if (!outcomes || outcomes->empty()) return result;
  crash_here(CrashPoint::consumer_before_commit);
  if (const Status committed = session.commit(statements.commit); !committed)
    return RolledBack{failure_of(committed.error()), std::nullopt};
  crash_here(CrashPoint::consumer_after_commit);
  return result;
}

}  // namespace outbox
