#include "consumer/inbox/inbox_session.hpp"

#include <thread>

#include "consumer/inbox/handler_transaction.hpp"

namespace outbox {
namespace {

constexpr std::int32_t partition_days_ahead = 7;
constexpr int tries_max = 3;  // at once; then the caller waits
constexpr Millis answer_patience{
    5000};  // for the session's own short statements; a lock is not waited for that long
constexpr BackoffOptions between_tries{Millis{2}, Millis{20}};

constexpr const char* cancelled_text = "cancelled, since the partition or the process goes";

RolledBack cancelled() {
  return {{Failure::Kind::transient, cancelled_text}, std::nullopt};
}

/// Bounds the answers of a session while it lives.
struct Impatience {
  pg::Session& session;
  explicit Impatience(pg::Session& of) : session(of) { session.answer_within(answer_patience); }
  ~Impatience() { session.answer_within(Millis{0}); }
  Impatience(const Impatience&) = delete;
  Impatience& operator=(const Impatience&) = delete;
};

}  // namespace

Status InboxSession::connect() {
  if (session_ && is_clean(*session_)) return {};
  disconnect();
  auto made = pg::Session::connect({.uri = uri_, .application_name = "outbox:" + consumer_});
  if (!made) return failure(std::move(made.error()));
  {
    const std::lock_guard lock(mutex_);
    session_.emplace(*std::move(made));
    body_type_.clear();
  }
  Status registered = register_consumer();
  if (!registered) disconnect();
  return registered;
}

Status InboxSession::register_consumer() {
  const Impatience impatience(*session_);
  pg::Params params;
  params.text(consumer_);
  horizon_ == forever ? params.null() : params.i32(static_cast<std::int32_t>(horizon_.count()));
  const auto done = session_->exec(statements_.register_consumer, params);
  return done ? Status{} : failure(done.error());
}

void InboxSession::disconnect() {
  const std::lock_guard lock(mutex_);
  session_.reset();
}

BatchResult InboxSession::once(const Work& work) {
  if (const Status up = connect(); !up)
    return RolledBack{{Failure::Kind::transient, up.error().text()}, std::nullopt};
  if (ending()) return cancelled();
  return work(InboxContext{*session_, statements_, consumer_, body_type_, guard_, id_of_});
}

BatchResult InboxSession::run(const Work& work) {
  Backoff backoff(between_tries, reinterpret_cast<std::uintptr_t>(this));
  for (int tries = 1;; ++tries) {
    if (ending()) return cancelled();
    BatchResult result = once(work);
    const auto* back = std::get_if<RolledBack>(&result);
    if (!back) return result;
    // What the library itself could not do may be this server's or this session's fault; another may be
    // better.
    const bool suspect = !back->at && back->failure.kind == Failure::Kind::environment;
    if (suspect || (session_ && !is_clean(*session_))) disconnect();
    if (ending()) return cancelled();
    if (back->failure.kind != Failure::Kind::transient || tries == tries_max) return result;
    std::this_thread::sleep_for(backoff.next());
  }
}

Millis InboxSession::in_environment_for(const Record& record) {
  const MonoTime at = std::chrono::steady_clock::now();
  Ailing& ailing = ailing_[{std::string(record.topic), record.partition}];
  if (ailing.offset != record.offset) ailing = {record.offset, at};
  return std::chrono::duration_cast<Millis>(at - ailing.since);
}

Status InboxSession::check() {
  const std::string tables = "processed_msgs, dead_msgs and inbox_consumer in schema " + statements_.schema;
  const auto advise = [&](Error error) {
    if (error.code.starts_with("42") || error.code.starts_with("3F"))
      error.advice = error.code == "42501"
                         ? "grant SELECT, INSERT and UPDATE on " + tables + " to this role"
                         : "the consumer needs " + tables + ": run `outboxd migrate` on this database";
    return failure(std::move(error));
  };
  if (const Status up = connect(); !up) return advise(up.error());
  const Impatience impatience(*session_);
  pg::Params params;
  params.text(statements_.schema);
  const auto rows = session_->exec(statements_.ready, params);
  if (!rows) return advise(rows.error());
  if (rows->boolean(0, 0) && rows->boolean(0, 1)) return {};
  return advise({Disposition::fatal, "42501", "no privilege on the consumer's tables", ""});
}

Result<Upkeep> InboxSession::maintain() {
  if (const Status up = connect(); !up) return failure(up.error());
  Upkeep done;
  for (bool more = true; more;) {  // a call makes one partition, or does the rest
    if (ending()) return failure(Disposition::retry, cancelled_text);
    pg::Params params;
    params.i32(partition_days_ahead);
    const auto rows = session_->exec_prepared(statements_.maintain, params);
    if (!rows) return failure(rows.error());
    done.busy = rows->boolean(0, 0);
    more = rows->integer(0, 1) > 0;
    done.made += static_cast<int>(rows->integer(0, 1));
    done.dropped += static_cast<int>(rows->integer(0, 2));
    done.purged += rows->integer(0, 3);
    done.waiting += static_cast<int>(rows->integer(0, 4));
  }
  return done;
}

Result<PartitionClaim> InboxSession::claim_partition(std::string_view topic, std::int32_t partition) {
  if (const Status up = connect(); !up) return failure(up.error());
  const Impatience impatience(*session_);
  pg::Params params;
  params.text(consumer_).text(topic).i32(partition);
  const auto rows = session_->exec_prepared(statements_.offset_claim, params);
  if (!rows) return failure(rows.error());
  PartitionClaim out{.epoch = rows->integer(0, 0)};
  if (!rows->is_null(0, 1)) out.next = rows->integer(0, 1);
  return out;
}

Result<std::int64_t> InboxSession::start_partition(std::string_view topic, std::int32_t partition,
                                                   std::int64_t next) {
  if (const Status up = connect(); !up) return failure(up.error());
  const Impatience impatience(*session_);
  pg::Params params;
  params.text(consumer_).text(topic).i32(partition).i64(next);
  const auto rows = session_->exec_prepared(statements_.offset_start, params);
  if (!rows) return failure(rows.error());
  return rows->integer(0, 0);
}

void InboxSession::cancel() noexcept {
  cancelled_ = true;
  const std::lock_guard lock(mutex_);
  if (session_) session_->cancel();
}

void InboxSession::abandon() noexcept {
  abandoned_ = true;
  const std::lock_guard lock(mutex_);
  if (session_) session_->abandon();
}

}  // namespace outbox
