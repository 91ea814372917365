#include "outbox/inbox.hpp"

#include <stdexcept>

#include "consumer/inbox/dead_letters.hpp"
#include "consumer/inbox/settlement.hpp"

namespace outbox {
namespace {

constexpr std::chrono::hours horizon_max{876'000};  // a century

InboxOptions checked(InboxOptions options) {
  if (options.name.empty() || options.name.size() > 200)
    throw std::invalid_argument("outbox: the consumer's name must have 1 to 200 bytes");
  if (options.horizon < std::chrono::hours{48} ||
      (options.horizon != forever && options.horizon > horizon_max))
    throw std::invalid_argument("outbox: horizon is " + std::to_string(options.horizon.count()) +
                                " h: 48 to 876000, or forever");
  if (options.attempts_max < 1 || options.attempts_max > 1000)
    throw std::invalid_argument("outbox: attempts_max is " + std::to_string(options.attempts_max) +
                                ": 1 to 1000");
  return options;
}

SqlError to_exception(const Error& error) {
  return {error.code, error.text(),
          is_transient(error) ? SqlError::Repeat::may_help : SqlError::Repeat::is_useless};
}

Statements statements_for(const InboxOptions& options) {
  auto statements = make_statements(options.schema);
  if (!statements) throw std::invalid_argument("outbox: schema: " + statements.error().text());
  return *std::move(statements);
}

}  // namespace

std::string_view to_string(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::fresh:
      return "fresh";
    case Verdict::duplicate:
      return "duplicate";
    case Verdict::conflict:
      return "conflict";
    case Verdict::expired:
      return "expired";
    case Verdict::stale:
      return "stale";
    case Verdict::malformed:
      return "malformed";
  }
  return "unknown";
}

std::string_view to_string(Fate fate) noexcept {
  switch (fate) {
    case Fate::applied:
      return "applied";
    case Fate::skipped:
      return "skipped";
    case Fate::dead:
      return "dead";
    case Fate::parked:
      return "parked";
    case Fate::failed:
      return "failed";
    case Fate::waiting:
      return "waiting";
  }
  return "unknown";
}

struct Inbox::State {
  explicit State(InboxOptions o)
      : options(checked(std::move(o))), session(options, statements_for(options)) {}

  std::vector<Outcome> process(std::span<const Record> records, const HandlerCall& handler) {
    session.forget_cancel();
    auto outcomes =
        Settlement(session, {options.attempts_max, options.after_attempts, options.environment_patience},
                   handler, records)
            .run();
    if (options.on_outcome)
      for (std::size_t i = 0; i < outcomes.size(); ++i)
        if (outcomes[i].settled() || outcomes[i].blocked) options.on_outcome(records[i], outcomes[i]);
    return outcomes;
  }
  std::vector<Outcome> retry_dead(const HandlerCall& handler, int letters_max) {
    session.forget_cancel();
    return DeadLetters(session, handler, options.on_outcome).retry(letters_max);
  }

  InboxOptions options;
  InboxSession session;
};

Inbox::Inbox(InboxOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Inbox::~Inbox() = default;
Inbox::Inbox(Inbox&&) noexcept = default;
Inbox& Inbox::operator=(Inbox&&) noexcept = default;

void Inbox::check() {
  if (const Status ready = state_->session.check(); !ready) throw to_exception(ready.error());
}

Upkeep Inbox::maintain() {
  const auto done = state_->session.maintain();
  if (!done) throw to_exception(done.error());
  return *done;
}

PartitionClaim Inbox::claim_partition(std::string_view topic, std::int32_t partition) {
  const auto claimed = state_->session.claim_partition(topic, partition);
  if (!claimed) throw to_exception(claimed.error());
  return *claimed;
}

std::int64_t Inbox::start_partition(std::string_view topic, std::int32_t partition, std::int64_t next) {
  const auto start = state_->session.start_partition(topic, partition, next);
  if (!start) throw to_exception(start.error());
  return *start;
}

std::vector<Outcome> Inbox::process(std::span<const Record> records, const Handler& handler) {
  return state_->process(records, HandlerCall(handler));
}

std::vector<Outcome> Inbox::process(std::span<const Record> records, const SpanHandler& handler) {
  return state_->process(records, HandlerCall(handler));
}

std::vector<Outcome> Inbox::retry_dead(const Handler& handler, int letters_max) {
  return state_->retry_dead(HandlerCall(handler), letters_max);
}

std::vector<Outcome> Inbox::retry_dead(const SpanHandler& handler, int letters_max) {
  return state_->retry_dead(HandlerCall(handler), letters_max);
}

Outcome Inbox::process(const Record& record, const Handler& handler) {
  return process({&record, 1}, handler).front();
}

void Inbox::cancel() noexcept {
  state_->session.cancel();
}

void Inbox::abandon() noexcept {
  state_->session.abandon();
}

}  // namespace outbox
