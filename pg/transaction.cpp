#include <string_view>

#include "pg/libpq.hpp"

namespace outbox::pg {
namespace {

// Rolls back unless told not to, also where the body threw. A failing ROLLBACK leaves a broken session, which
// broken() shows; what the body reported matters more.
class RollbackAtExit {
 public:
  explicit RollbackAtExit(Session& session) : session_(session) {}
  RollbackAtExit(const RollbackAtExit&) = delete;
  RollbackAtExit& operator=(const RollbackAtExit&) = delete;
  ~RollbackAtExit() {
    if (session_.in_transaction()) static_cast<void>(session_.exec("ROLLBACK"));
  }

 private:
  Session& session_;
};

}  // namespace

Status Session::transaction(const std::function<Status(Session&)>& body) {
  if (in_transaction()) return failure(Disposition::fatal, "a transaction is already open on this session");
  if (auto begun = exec("BEGIN"); !begun) {
    if (begun.error().disposition == Disposition::in_doubt)
      begun.error().disposition = Disposition::reconnect;
    return failure(std::move(begun.error()));
  }
  const RollbackAtExit at_exit{*this};
  if (Status done = body(*this); !done) return done;
  auto committed = exec("COMMIT");
  if (!committed) return failure(std::move(committed.error()));
  // The server answers COMMIT with ROLLBACK, and no error, where a statement had failed and the body went on.
  const std::string_view tag = PQcmdStatus(const_cast<pg_result*>(committed->native()));
  if (tag != "COMMIT") {
    return failure(Disposition::fatal,
                   "the transaction was rolled back: a statement in it failed and was not reported");
  }
  return {};
}

}  // namespace outbox::pg
