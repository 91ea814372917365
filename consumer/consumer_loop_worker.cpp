#include <algorithm>
#include <string>

#include "consumer/consumer_loop.hpp"

namespace outbox {
namespace {

MonoTime now() {
  return std::chrono::steady_clock::now();
}

std::string where(const Record& record) {
  return std::string(record.topic) + "-" + std::to_string(record.partition) +
         " offset=" + std::to_string(record.offset);
}

std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

}  // namespace

void LiveCounters::count(std::span<const Outcome> outcomes) {
  ++batches;
  for (const auto& outcome : outcomes) {
    if (outcome.fate == Fate::applied) ++fresh;
    if (outcome.fate == Fate::skipped) ++duplicate;
    if (outcome.fate == Fate::dead) ++dead;
    if (outcome.fate == Fate::dead && outcome.verdict == Verdict::conflict) ++conflict;
    if (!outcome.settled()) ++retried;
  }
}

Counters LiveCounters::snapshot() const {
  return {.fresh = fresh,
          .duplicate = duplicate,
          .conflict = conflict,
          .dead = dead,
          .retried = retried,
          .batches = batches};
}

void ConsumerLoop::work(const Handler& handler) noexcept {
  std::exception_ptr failure;
  try {
    while (work_once(handler)) {
    }
  } catch (const std::exception& e) {
    failure = std::make_exception_ptr(ConsumerError(e.what()));
  }
  const std::lock_guard lock(mutex_);
  worker_failure_ = failure;
  worker_ended_ = true;
  changed_.notify_all();
}

bool ConsumerLoop::work_once(const Handler& handler) {
  std::unique_lock lock(mutex_);
  Backlog::Batch batch;
  while (!ending_ && (batch = backlog_.take(now())).empty()) {
    const auto due = backlog_.next_due();
    due ? static_cast<void>(changed_.wait_until(lock, *due)) : changed_.wait(lock);
  }
  if (batch.empty()) return false;
  lock.unlock();

  std::vector<Record> records;
  for (const auto& fetched : batch.records) records.push_back(fetched.record);
  const auto outcomes = inbox_.process(records, handler);
  counters_.count(outcomes);
  tell(outcomes, batch);

  lock.lock();
  backlog_.finish(std::move(batch), outcomes, now());
  changed_.notify_all();
  return !ending_;
}

void ConsumerLoop::tell(std::span<const Outcome> outcomes, const Backlog::Batch& batch) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Record& record = batch.records[i].record;
    const std::string reason = " reason=\"" + one_line(outcomes[i].reason) + "\"";
    if (outcomes[i].fate == Fate::dead)
      options_.log("message_dead at=" + where(record) +
                   " verdict=" + std::string(to_string(outcomes[i].verdict)) + reason);
    if (outcomes[i].fate == Fate::failed && record.attempt == 1)
      options_.log("message_failed at=" + where(record) + reason);
  }
  const bool away = outcomes.front().fate == Fate::waiting;
  if (away && !database_away_)
    options_.log("work_waits reason=\"" + one_line(outcomes.front().reason) + "\"");
  if (!away && database_away_) options_.log("work_goes_on");
  database_away_ = away;
}

}  // namespace outbox
