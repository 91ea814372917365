#include "consumer/inbox_session.hpp"

#include <thread>

#include "consumer/handler_transaction.hpp"

namespace outbox {
namespace {

constexpr int tries_max = 3;  // at once; then the caller waits
constexpr BackoffOptions between_tries{Millis{2}, Millis{20}};

}  // namespace

Status InboxSession::connect() {
  if (session_ && is_clean(*session_)) return {};
  disconnect();
  auto made = pg::Session::connect({.uri = uri_, .application_name = "outbox:" + consumer_});
  if (!made) return failure(std::move(made.error()));
  const std::lock_guard lock(mutex_);
  session_.emplace(*std::move(made));
  body_type_.clear();
  return {};
}

void InboxSession::disconnect() {
  const std::lock_guard lock(mutex_);
  session_.reset();
}

BatchResult InboxSession::once(const std::function<BatchResult(BatchTransaction&)>& work) {
  if (const Status up = connect(); !up)
    return RolledBack{{Failure::Kind::transient, up.error().text()}, std::nullopt};
  BatchTransaction transaction(*session_, statements_, consumer_, body_type_);
  return work(transaction);
}

BatchResult InboxSession::run(const std::function<BatchResult(BatchTransaction&)>& work) {
  Backoff backoff(between_tries, reinterpret_cast<std::uintptr_t>(this));
  for (int tries = 1;; ++tries) {
    BatchResult result = once(work);
    const auto* back = std::get_if<RolledBack>(&result);
    if (!back) return result;
    // What the library itself could not do may be this server's or this session's fault; another may be
    // better.
    const bool suspect = !back->at && back->failure.kind == Failure::Kind::environment;
    if (suspect || (session_ && !is_clean(*session_))) disconnect();
    if (back->failure.kind != Failure::Kind::transient || tries == tries_max) return result;
    std::this_thread::sleep_for(backoff.next());
  }
}

Status InboxSession::check() {
  if (const Status up = connect(); !up) return up;
  const std::string tables = "processed_msgs and dead_msgs in schema " + statements_.schema;
  pg::Params params;
  params.text(statements_.schema);
  const auto rows = session_->exec(statements_.ready, params);
  if (!rows) {
    Error error = rows.error();
    if (error.code.starts_with("42") || error.code.starts_with("3F"))
      error.advice = "the consumer needs " + tables + ": run `outboxd migrate` on this database";
    return failure(std::move(error));
  }
  if (rows->boolean(0, 0) && rows->boolean(0, 1)) return {};
  return failure(Disposition::fatal, "no privilege on " + tables, "42501",
                 "grant SELECT and INSERT on them to this role");
}

void InboxSession::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  if (session_) session_->cancel();
}

}  // namespace outbox
