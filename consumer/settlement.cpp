#include "consumer/settlement.hpp"

#include <algorithm>

namespace outbox {

using Kind = Failure::Kind;

Settlement::Settlement(InboxSession& session, int attempts_max, const Handler& handler,
                       std::span<const Record> records)
    : session_(session), attempts_max_(attempts_max), handler_(handler), outcomes_(records.size()) {
  for (const auto& record : records) candidates_.push_back(read_candidate(record));
}

std::vector<Outcome> Settlement::run() {
  settle(0, candidates_.size());
  return std::move(outcomes_);
}

bool Settlement::blocked(std::size_t i) const {
  return blocked_.contains({candidates_[i].record->topic, candidates_[i].record->partition});
}

void Settlement::leave(std::size_t first, std::size_t last, const std::string& reason) {
  for (std::size_t i = first; i < last; ++i) outcomes_[i] = {Fate::waiting, Verdict::fresh, reason};
}

void Settlement::settle(std::size_t first, std::size_t last) {
  for (std::size_t from = first; from < last;) {
    std::size_t to = from;
    while (to < last && !away_ && !blocked(to)) ++to;
    if (to > from) {
      settle_run(from, to);
      from = to;
    } else {
      leave(from, from + 1, away_ ? away_->reason : "waits behind a message of its partition");
      ++from;
    }
  }
}

void Settlement::settle_run(std::size_t first, std::size_t last) {
  const auto batch = std::span(candidates_).subspan(first, last - first);
  BatchResult result = session_.run([&](BatchTransaction& tx) { return tx.apply(batch, handler_); });
  if (auto* done = std::get_if<std::vector<Outcome>>(&result)) {
    std::ranges::move(*done, outcomes_.begin() + static_cast<std::ptrdiff_t>(first));
    return;
  }
  const auto& [failure, at] = std::get<RolledBack>(result);
  if (!at && failure.kind != Kind::message) {
    away_ = failure;
    return leave(first, last, failure.reason);
  }
  if (last - first == 1) return settle_failed(first, failure);
  const std::size_t middle = first + (at ? *at : (last - first) / 2);
  settle(first, middle);
  if (at) settle(middle, middle + 1);
  settle(at ? middle + 1 : middle, last);
}

void Settlement::settle_failed(std::size_t i, const Failure& failure) {
  const Record& record = *candidates_[i].record;
  const bool exhausted = failure.kind == Kind::message && record.attempt >= attempts_max_;
  if (failure.kind == Kind::rejected || exhausted) return bury(i, failure);
  const bool counts = failure.kind == Kind::message || failure.kind == Kind::later;
  outcomes_[i] = {counts ? Fate::failed : Fate::waiting, Verdict::fresh, failure.reason};
  blocked_.emplace(record.topic, record.partition);
}

void Settlement::bury(std::size_t i, const Failure& failure) {
  const auto* verdict = failure.kind == Kind::rejected ? "rejected" : "failed";
  BatchResult result =
      session_.run([&](BatchTransaction& tx) { return tx.bury(candidates_[i], verdict, failure.reason); });
  if (auto* done = std::get_if<std::vector<Outcome>>(&result)) {
    outcomes_[i] = std::move(done->front());
    return;
  }
  away_ = std::get<RolledBack>(result).failure;
  leave(i, i + 1, away_->reason);
}

}  // namespace outbox
