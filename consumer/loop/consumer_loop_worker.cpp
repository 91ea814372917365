#include <algorithm>
#include <string>

#include "consumer/core/text.hpp"
#include "consumer/loop/consumer_loop.hpp"

namespace outbox {
namespace {

MonoTime now() {
  return std::chrono::steady_clock::now();
}

std::string where(const Record& record) {
  return std::string(record.topic) + "-" + std::to_string(record.partition) +
         " offset=" + std::to_string(record.offset);
}

}  // namespace

void LiveCounters::count(std::span<const Outcome> outcomes) {
  ++batches;
  for (const auto& outcome : outcomes) {
    if (!outcome.settled()) {
      ++retried;
      continue;
    }
    if (outcome.fate == Fate::applied) ++fresh;
    if (outcome.fate == Fate::dead) ++dead;
    if (outcome.fate == Fate::parked) ++parked;
    if (outcome.verdict == Verdict::duplicate) ++duplicate;
    if (outcome.verdict == Verdict::conflict) ++conflict;
    if (outcome.verdict == Verdict::expired) ++expired;
    if (outcome.verdict == Verdict::stale) ++stale;
    if (outcome.verdict == Verdict::malformed) ++malformed;
  }
}

void LiveCounters::count_revived(std::span<const Outcome> outcomes) {
  for (const auto& outcome : outcomes) {
    if (outcome.fate == Fate::applied) ++revived;
    if (outcome.verdict == Verdict::stale) ++stale;
  }
}

Counters LiveCounters::snapshot() const {
  return {.fresh = fresh,
          .duplicate = duplicate,
          .conflict = conflict,
          .expired = expired,
          .stale = stale,
          .malformed = malformed,
          .dead = dead,
          .parked = parked,
          .revived = revived,
          .blocked = blocked,
          .retried = retried,
          .batches = batches};
}

void ConsumerLoop::work(Worker worker, const LoopWork& work) noexcept {
  std::exception_ptr failure;
  try {
    while (work_once(worker, work)) {
    }
  } catch (const std::exception& e) {
    failure = std::make_exception_ptr(ConsumerError(e.what()));
  }
  const std::lock_guard lock(mutex_);
  if (failure) worker_failure_ = failure;
  ++workers_ended_;
  changed_.notify_all();
}

/// Empty: the loop ends, or it is time to look for dead messages that are wanted after all.
Backlog::Batch ConsumerLoop::wait_for_batch(Worker& worker, std::unique_lock<std::mutex>& lock) {
  const bool looks = options_.dead_retry_interval.count() > 0;
  Backlog::Batch batch;
  while (!ending_ && (batch = backlog_.take(now(), worker.number)).empty()) {
    if (looks && now() >= worker.dead_retry_due) break;
    auto due = backlog_.next_due(worker.number);
    if (looks) due = due ? std::min(*due, worker.dead_retry_due) : worker.dead_retry_due;
    due ? static_cast<void>(changed_.wait_until(lock, *due)) : changed_.wait(lock);
  }
  return batch;
}

bool ConsumerLoop::work_once(Worker& worker, const LoopWork& work) {
  std::unique_lock lock(mutex_);
  Backlog::Batch batch = wait_for_batch(worker, lock);
  if (ending_ && batch.empty()) return false;
  lock.unlock();
  retry_dead(worker, work);
  if (batch.empty()) return true;
  if (stops()) return false;  // what it was cancelled in may have been the retry: nothing is begun after it

  std::vector<Record> records;
  records.reserve(batch.records.size());
  for (const auto& fetched : batch.records) records.push_back(fetched.record);
  const MonoTime start = now();
  const auto outcomes = work.process(worker.inbox, records);
  counters_.count(outcomes);
  measure(outcomes, start);
  tell(worker, outcomes, batch);

  lock.lock();
  if (std::ranges::any_of(outcomes, &Outcome::fenced)) fenced_ = true;
  backlog_.finish(std::move(batch), outcomes, now());
  changed_.notify_all();
  return !ending_;
}

bool ConsumerLoop::stops() {
  const std::lock_guard lock(mutex_);
  return ending_;
}

void ConsumerLoop::retry_dead(Worker& worker, const LoopWork& work) {
  if (options_.dead_retry_interval.count() == 0 || now() < worker.dead_retry_due) return;
  const auto outcomes = work.retry_dead(worker.inbox);
  counters_.count_revived(outcomes);
  measure_revived(outcomes);
  for (const auto& outcome : outcomes)
    options_.log("dead_message_retried fate=" + std::string(to_string(outcome.fate)) +
                 (outcome.reason.empty() ? "" : " reason=\"" + one_line(outcome.reason) + "\""));
  worker.dead_retry_due = now() + options_.dead_retry_interval;
}

void ConsumerLoop::tell(Worker& worker, std::span<const Outcome> outcomes, const Backlog::Batch& batch) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Record& record = batch.records[i].record;
    const std::string reason = " reason=\"" + one_line(outcomes[i].reason) + "\"";
    if (outcomes[i].fate == Fate::dead)
      options_.log("message_dead at=" + where(record) +
                   " verdict=" + std::string(to_string(outcomes[i].verdict)) + reason);
    if (outcomes[i].fate == Fate::parked) options_.log("message_parked at=" + where(record) + reason);
    if (outcomes[i].blocked && record.attempt == options_.attempts_max) {
      ++counters_.blocked;
      options_.log("message_blocks_its_partition at=" + where(record) + reason +
                   " next=\"a person must act: it is tried on\"");
    }
    if (outcomes[i].fate == Fate::failed && record.attempt == 1)
      options_.log("message_failed at=" + where(record) + reason);
  }
  const bool away = outcomes.front().fate == Fate::waiting;
  if (away && !worker.database_away)
    options_.log("work_waits reason=\"" + one_line(outcomes.front().reason) + "\"");
  if (!away && worker.database_away) options_.log("work_goes_on");
  worker.database_away = away;
}

}  // namespace outbox
