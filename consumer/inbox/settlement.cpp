#include "consumer/inbox/settlement.hpp"

#include <algorithm>

namespace outbox {

using Kind = Failure::Kind;

Settlement::Settlement(InboxSession& session, FailurePolicy policy, const HandlerCall& handler,
                       std::span<const Record> records)
    : session_(session), policy_(policy), handler_(handler), outcomes_(records.size()) {
  for (const auto& record : records) candidates_.push_back(read_candidate(record, session.id_of()));
}

std::vector<Outcome> Settlement::run() {
  settle(0, candidates_.size());
  return std::move(outcomes_);
}

bool Settlement::blocked(std::size_t i) const {
  return blocked_.contains({candidates_[i].record->topic, candidates_[i].record->partition});
}

void Settlement::leave(std::size_t first, std::size_t last, const Failure& failure) {
  for (std::size_t i = first; i < last; ++i)
    outcomes_[i] = {.fate = Fate::waiting, .reason = failure.reason, .fenced = failure.kind == Kind::fenced};
}

void Settlement::settle(std::size_t first, std::size_t last) {
  for (std::size_t from = first; from < last;) {
    std::size_t to = from;
    while (to < last && !away_ && !blocked(to) && (to == from || !session_.one_by_one())) ++to;
    if (to > from) {
      settle_run(from, to);
      from = to;
    } else {
      leave(from, from + 1, away_ ? *away_ : Failure{.reason = "waits behind a message of its partition"});
      ++from;
    }
  }
}

void Settlement::settle_run(std::size_t first, std::size_t last) {
  const auto batch = std::span(candidates_).subspan(first, last - first);
  BatchResult result =
      session_.run([&](const InboxContext& inbox) { return BatchTransaction(inbox).apply(batch, handler_); });
  if (auto* done = std::get_if<std::vector<Outcome>>(&result)) {
    std::ranges::move(*done, outcomes_.begin() + static_cast<std::ptrdiff_t>(first));
    return;
  }
  const auto& [failure, at, by_handler] = std::get<RolledBack>(result);
  if (!by_handler && failure.kind != Kind::message) {
    away_ = failure;
    return leave(first, last, failure);
  }
  if (failure.kind == Kind::alone) {
    session_.go_one_by_one();
    return settle(first, last);
  }
  if (last - first == 1) return settle_failed(first, failure);
  const std::size_t middle = first + (at ? *at : (last - first) / 2);
  settle(first, middle);
  if (at) settle(middle, middle + 1);
  settle(at ? middle + 1 : middle, last);
}

void Settlement::settle_failed(std::size_t i, Failure failure) {
  const Record& record = *candidates_[i].record;
  const bool environment = failure.kind == Kind::environment;
  const bool lasts = environment && session_.in_environment_for(record) >= policy_.environment_patience;
  if (lasts) failure.kind = Kind::message;
  const bool exhausted = failure.kind == Kind::message && record.attempt >= policy_.attempts_max;
  const bool blocks = exhausted && policy_.after_attempts == AfterAttempts::block;
  if (failure.kind == Kind::rejected || failure.kind == Kind::stale || (exhausted && !blocks))
    return end(i, failure);
  const bool counts = failure.kind == Kind::message || failure.kind == Kind::later;
  outcomes_[i] = {.fate = counts ? Fate::failed : Fate::waiting,
                  .reason = failure.reason,
                  .retry_wait = failure.wait,
                  .blocked = blocks || failure.kind == Kind::environment};
  blocked_.emplace(record.topic, record.partition);
}

ProcessedState Settlement::end_state(std::size_t i, const Failure& failure) const {
  if (failure.kind == Kind::stale) return ProcessedState::discarded;
  const bool parks = failure.kind == Kind::message && policy_.after_attempts == AfterAttempts::park_key;
  return parks && candidates_[i].record->key ? ProcessedState::parked : ProcessedState::dead;
}

void Settlement::end(std::size_t i, const Failure& failure) {
  const Ending ending{.state = end_state(i, failure),
                      .verdict = failure.kind == Kind::rejected ? "rejected" : "failed",
                      .reason = failure.reason};
  BatchResult result = session_.run(
      [&](const InboxContext& inbox) { return BatchTransaction(inbox).end(candidates_[i], ending); });
  if (auto* done = std::get_if<std::vector<Outcome>>(&result)) {
    outcomes_[i] = std::move(done->front());
    return;
  }
  away_ = std::get<RolledBack>(result).failure;
  leave(i, i + 1, *away_);
}

}  // namespace outbox
