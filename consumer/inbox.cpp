#include "outbox/inbox.hpp"

#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/backoff.hpp"
#include "consumer/batch_transaction.hpp"
#include "consumer/handler_transaction.hpp"

namespace outbox {
namespace {

constexpr int repeats_max =
    3;  // of a transaction at once, for a deadlock or a restarted server; then the caller waits
constexpr BackoffOptions repeat_backoff{Millis{2}, Millis{20}};

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

std::string verdict_of(const Failure& failure) {
  return failure.kind == Failure::Kind::rejected ? "rejected" : "failed";
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
  explicit State(InboxOptions o) : options(checked(std::move(o))), statements(statements_for(options)) {}

  InboxOptions options;
  Statements statements;
  std::string body_type;
  std::mutex
      session_mutex;  // guards the pointer's changes against cancel(); only process() and check() change it
  std::optional<pg::Session> session;
  Backoff repeat{repeat_backoff, 1};

  // Of one call of process().
  std::vector<Candidate> candidates;
  std::vector<Outcome> outcomes;
  std::set<std::pair<std::string_view, std::int32_t>> blocked;  // partitions whose order forbids going on
  std::optional<Failure> away;                                  // set: the database's fault, stop

  Status connect() {
    if (session && is_clean(*session)) return {};
    disconnect();
    auto made = pg::Session::connect({.uri = options.postgres, .application_name = "outbox:" + options.name});
    if (!made) return failure(std::move(made.error()));
    const std::lock_guard lock(session_mutex);
    session.emplace(*std::move(made));
    body_type.clear();
    return {};
  }

  void disconnect() {
    const std::lock_guard lock(session_mutex);
    session.reset();
  }

  BatchResult once(std::span<const Candidate> batch, const Handler& handler) {
    if (const Status up = connect(); !up)
      return RolledBack{{Failure::Kind::transient, up.error().text()}, std::nullopt};
    return BatchTransaction(*session, statements, options.name, body_type).apply(batch, handler);
  }

  /// A transaction, repeated while that may help at once. A session that saw trouble is not trusted again.
  template <class Work>
  BatchResult repeated(Work work) {
    repeat.reset();
    for (int tries = 1;; ++tries) {
      BatchResult result = work();
      const auto* back = std::get_if<RolledBack>(&result);
      if (!back) return result;
      const bool transient = back->failure.kind == Failure::Kind::transient;
      const bool suspect = !back->at && back->failure.kind == Failure::Kind::environment;
      if (suspect || (session && !is_clean(*session))) disconnect();
      if (!transient || tries == repeats_max) return result;
      std::this_thread::sleep_for(repeat.next());
    }
  }

  bool is_blocked(std::size_t i) const {
    return blocked.contains({candidates[i].record->topic, candidates[i].record->partition});
  }

  void leave(std::size_t first, std::size_t last, const std::string& reason) {
    for (std::size_t i = first; i < last; ++i) outcomes[i] = {Fate::waiting, Verdict::fresh, reason};
  }

  /// Settles candidates [first, last): as one transaction; where one fails, those before it as one, it alone,
  /// those behind it as one. A failure that names nobody (a deferred constraint) halves the range instead.
  void settle(std::size_t first, std::size_t last, const Handler& handler);
  void settle_run(std::size_t first, std::size_t last, const Handler& handler);
  void settle_failed(std::size_t i, const Failure& failure);
};

void Inbox::State::settle(std::size_t first, std::size_t last, const Handler& handler) {
  for (std::size_t from = first; from < last;) {
    if (away || is_blocked(from)) {
      leave(from, from + 1, away ? away->reason : "waits behind a message of its partition");
      ++from;
      continue;
    }
    std::size_t to = from;
    while (to < last && !is_blocked(to)) ++to;
    settle_run(from, to, handler);
    from = to;
  }
}

void Inbox::State::settle_run(std::size_t first, std::size_t last, const Handler& handler) {
  const auto batch = std::span(candidates).subspan(first, last - first);
  BatchResult result = repeated([&] { return once(batch, handler); });
  if (auto* done = std::get_if<std::vector<Outcome>>(&result)) {
    std::ranges::move(*done, outcomes.begin() + static_cast<std::ptrdiff_t>(first));
    return;
  }
  const RolledBack& back = std::get<RolledBack>(result);
  if (back.failure.kind == Failure::Kind::transient ||
      (!back.at && back.failure.kind == Failure::Kind::environment)) {
    away = back.failure;
    return leave(first, last, away->reason);
  }
  if (last - first == 1) return settle_failed(first, back.failure);
  const std::size_t middle = first + (back.at ? *back.at : (last - first) / 2);
  settle(first, middle, handler);
  if (back.at) settle(middle, middle + 1, handler);
  settle(back.at ? middle + 1 : middle, last, handler);
}

void Inbox::State::settle_failed(std::size_t i, const Failure& failure) {
  using Kind = Failure::Kind;
  const Record& record = *candidates[i].record;
  const bool exhausted = failure.kind == Kind::message && record.attempt >= options.attempts_max;
  if (failure.kind == Kind::rejected || exhausted) {
    BatchResult result = repeated([&]() -> BatchResult {
      if (const Status up = connect(); !up)
        return RolledBack{{Kind::transient, up.error().text()}, std::nullopt};
      BatchTransaction transaction(*session, statements, options.name, body_type);
      return transaction.bury(candidates[i], verdict_of(failure), failure.reason);
    });
    if (auto* done = std::get_if<std::vector<Outcome>>(&result)) {
      outcomes[i] = std::move(done->front());
      return;
    }
    away = std::get<RolledBack>(result).failure;
    return leave(i, i + 1, away->reason);
  }
  const bool counts = failure.kind != Kind::environment;
  outcomes[i] = {counts ? Fate::failed : Fate::waiting, Verdict::fresh, failure.reason};
  blocked.emplace(record.topic, record.partition);
}

Inbox::Inbox(InboxOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Inbox::~Inbox() = default;
Inbox::Inbox(Inbox&&) noexcept = default;
Inbox& Inbox::operator=(Inbox&&) noexcept = default;

void Inbox::check() {
  const auto fail = [](const Error& error, const std::string& advice) {
    throw SqlError(error.code, error.text() + advice,
                   is_transient(error) ? SqlError::Repeat::may_help : SqlError::Repeat::is_useless);
  };
  if (const Status up = state_->connect(); !up) fail(up.error(), "");
  pg::Params params;
  params.text(state_->options.schema);
  const auto rows = state_->session->exec(state_->statements.ready, params);
  const std::string tables = "processed_msgs and dead_msgs in schema " + state_->options.schema;
  if (!rows) {
    const bool missing = rows.error().code.starts_with("42") || rows.error().code.starts_with("3F");
    return fail(rows.error(),
                missing ? "; the consumer needs " + tables + ": run `outboxd migrate` on this database" : "");
  }
  if (!rows->boolean(0, 0) || !rows->boolean(0, 1))
    fail({Disposition::fatal, "42501", "no privilege",
          "grant SELECT and INSERT on " + tables + " to this role"},
         "");
}

std::vector<Outcome> Inbox::process(std::span<const Record> records, const Handler& handler) {
  State& s = *state_;
  s.candidates.clear();
  for (const auto& record : records) s.candidates.push_back(read_candidate(record));
  s.outcomes.assign(records.size(), {});
  s.blocked.clear();
  s.away.reset();
  s.settle(0, records.size(), handler);
  return std::move(s.outcomes);
}

Outcome Inbox::process(const Record& record, const Handler& handler) {
  return process({&record, 1}, handler).front();
}

void Inbox::cancel() noexcept {
  const std::lock_guard lock(state_->session_mutex);
  if (state_->session) state_->session->cancel();
}

}  // namespace outbox
