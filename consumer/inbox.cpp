#include "outbox/inbox.hpp"

#include <stdexcept>

#include "consumer/settlement.hpp"

namespace outbox {
namespace {

InboxOptions checked(InboxOptions options) {
  if (options.name.empty() || options.name.size() > 200)
    throw std::invalid_argument("outbox: the consumer's name must have 1 to 200 bytes");
  if (options.attempts_max < 1 || options.attempts_max > 1000)
    throw std::invalid_argument("outbox: attempts_max is " + std::to_string(options.attempts_max) +
                                ": 1 to 1000");
  return options;
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
    case Fate::failed:
      return "failed";
    case Fate::waiting:
      return "waiting";
  }
  return "unknown";
}

struct Inbox::State {
  explicit State(InboxOptions o)
      : options(checked(std::move(o))), session(options.postgres, options.name, statements_for(options)) {}

  InboxOptions options;
  InboxSession session;
};

Inbox::Inbox(InboxOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Inbox::~Inbox() = default;
Inbox::Inbox(Inbox&&) noexcept = default;
Inbox& Inbox::operator=(Inbox&&) noexcept = default;

void Inbox::check() {
  const Status ready = state_->session.check();
  if (ready) return;
  throw SqlError(ready.error().code, ready.error().text(),
                 is_transient(ready.error()) ? SqlError::Repeat::may_help : SqlError::Repeat::is_useless);
}

std::vector<Outcome> Inbox::process(std::span<const Record> records, const Handler& handler) {
  return Settlement(state_->session, state_->options.attempts_max, handler, records).run();
}

Outcome Inbox::process(const Record& record, const Handler& handler) {
  return process({&record, 1}, handler).front();
}

void Inbox::cancel() noexcept {
  state_->session.cancel();
}

}  // namespace outbox
