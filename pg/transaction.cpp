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
  return commit();
}

}  // namespace outbox::pg
