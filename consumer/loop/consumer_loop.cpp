#include "consumer/loop/consumer_loop.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/crash_point.hpp"
#include "consumer/core/text.hpp"

namespace outbox {
namespace {

constexpr Millis poll_wait{50};  // also how late stop() may be noticed
constexpr Millis stall_after{
    1000};  // polling rests for this long while the buffer is full; then partitions are paused instead
constexpr Millis cancel_patience{1000};  // for a cancelled batch, before its connection is given up
constexpr int fetch_run_max = 1000;      // records taken before pauses and commits are looked at again

MonoTime now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

void ConsumerLoop::run(const LoopWork& loop_work, const std::atomic<bool>& stop) {
  subscription_.start({.starts = [this, &stop](auto partitions) { return claim(partitions, stop); },
                       .on_assigned = [this](auto partitions) { assigned(partitions); },
                       .on_revoked = [this](auto partitions, Revoked how) { revoked(partitions, how); },
                       .log = options_.log});
  commit_due_ = now() + options_.commit_interval;
  std::vector<std::thread> workers;
  workers.reserve(inboxes_.size());
  for (int n = 0; n < std::ssize(inboxes_); ++n)
    workers.emplace_back(
        [&, n] { work({.number = n, .inbox = inboxes_[static_cast<std::size_t>(n)]}, loop_work); });
  std::exception_ptr failure;
  try {
    while (!stop) turn();
  } catch (...) {
    failure = std::current_exception();
  }
  shut_down(workers);
  if (worker_failure_) failure = worker_failure_;
  if (failure) std::rethrow_exception(failure);
}

void ConsumerLoop::turn() {
  adjust_pauses();
  commit_soon();
  measure_lag();
  {
    std::unique_lock lock(mutex_);
    if (workers_ended_ > 0) throw ConsumerError("a worker ended");
    if (std::exchange(fenced_, false)) {
      lock.unlock();
      options_.log("partition_fenced next=\"another member has claimed it: the group is joined again\"");
      return subscription_.rejoin();
    }
    if (backlog_.full()) wait_for_room(lock);
    if (full_since_ && now() - *full_since_ < stall_after) return;
  }
  fetch();
}

void ConsumerLoop::wait_for_room(std::unique_lock<std::mutex>& lock) {
  if (!full_since_) full_since_ = now();
  if (now() - *full_since_ < stall_after)
    changed_.wait_for(lock, poll_wait, [&] { return !backlog_.full() || workers_ended_ > 0; });
  if (!backlog_.full()) full_since_.reset();
}

void ConsumerLoop::fetch() {
  Millis wait = poll_wait;
  for (int i = 0; i < fetch_run_max; ++i) {
    auto record = subscription_.poll(wait);
    if (!record) throw ConsumerError(record.error().text());
    if (!*record) return;
    crash_here(CrashPoint::consumer_after_fetch);
    const std::lock_guard lock(mutex_);
    backlog_.push(**std::move(record));
    changed_.notify_all();
    if (backlog_.full()) return;
    wait = Millis{0};
  }
}

void ConsumerLoop::adjust_pauses() {
  std::set<PartitionId> wanted;
  {
    const std::lock_guard lock(mutex_);
    if (full_since_ && !backlog_.full()) full_since_.reset();
    const bool stalled = full_since_ && now() - *full_since_ >= stall_after;
    for (auto& id : stalled ? backlog_.assigned() : backlog_.waiting()) wanted.insert(std::move(id));
  }
  std::vector<PartitionId> pause, resume;
  std::ranges::set_difference(wanted, paused_, std::back_inserter(pause));
  std::ranges::set_difference(paused_, wanted, std::back_inserter(resume));
  if (!pause.empty()) subscription_.pause(pause);
  if (!resume.empty()) subscription_.resume(resume);
  paused_ = std::move(wanted);
}

void ConsumerLoop::commit_soon() {
  if (now() < commit_due_) return;
  std::vector<NextOffset> offsets;
  {
    const std::lock_guard lock(mutex_);
    offsets = backlog_.take_commits();
  }
  if (offsets.empty()) return;
  static_cast<void>(subscription_.commit(offsets, Commit::soon));
  commit_due_ = now() + options_.commit_interval;
}

void ConsumerLoop::commit_now() {
  std::vector<NextOffset> offsets;
  {
    const std::lock_guard lock(mutex_);
    offsets = backlog_.take_commits();
  }
  if (offsets.empty()) return;
  if (const Status done = subscription_.commit(offsets, Commit::now); !done)
    options_.log("commit_failed reason=\"" + done.error().text() +
                 "\" next=\"the messages come again as duplicates\"");
}

/// Waits for a database that is away, and for the transaction of an owner that froze in it: the group's own
/// time-out gives the partitions to others meanwhile.
Result<PartitionClaim> ConsumerLoop::claim_one(const PartitionId& partition, const std::atomic<bool>& stop) {
  Backoff backoff(options_.limits.backoff, 1);
  bool told = false;
  while (!stop) {
    try {
      return options_.claim(partition);
    } catch (const SqlError& e) {
      if (!e.transient()) return failure(Disposition::fatal, e.what());
      if (!std::exchange(told, true))
        options_.log("claim_waits partition=" + to_string(partition) + " reason=\"" + one_line(e.what()) +
                     "\"");
    }
    std::this_thread::sleep_for(std::min(backoff.next(), stall_after));
  }
  return failure(Disposition::retry, "the consumer stops");
}

Result<Subscription::Starts> ConsumerLoop::claim(std::span<const PartitionId> partitions,
                                                 const std::atomic<bool>& stop) {
  Subscription::Starts out;
  if (!options_.claim) return out;
  for (const auto& id : partitions) {
    const auto claimed = claim_one(id, stop);
    if (!claimed) return failure(claimed.error());
    epochs_[id] = claimed->epoch;
    if (claimed->next) out[id] = *claimed->next;
  }
  return out;
}

void ConsumerLoop::assigned(std::span<const PartitionId> partitions) {
  const std::lock_guard lock(mutex_);
  for (const auto& id : partitions) {
    const auto epoch = epochs_.find(id);
    backlog_.assign(id, epoch == epochs_.end() ? 0 : epoch->second);
    paused_.erase(id);
    options_.log("partition_assigned partition=" + to_string(id));
  }
}

void ConsumerLoop::revoked(std::span<const PartitionId> partitions, Revoked how) {
  {
    std::unique_lock lock(mutex_);
    for (const auto& id : partitions) backlog_.retire(id);
    if (how == Revoked::handed_over && !ending_) wait_until_idle(lock, partitions);
  }
  crash_here(CrashPoint::consumer_in_rebalance);
  forget_lag(partitions);
  if (how == Revoked::handed_over) commit_now();
  const std::lock_guard lock(mutex_);
  for (const auto& id : partitions) {
    backlog_.revoke(id);
    paused_.erase(id);
    options_.log("partition_revoked partition=" + to_string(id) + (how == Revoked::lost ? " lost=true" : ""));
  }
}

bool ConsumerLoop::workers_end_within(std::unique_lock<std::mutex>& lock, Millis patience) {
  return changed_.wait_for(lock, patience, [this] { return all_ended(); });
}

void ConsumerLoop::say_unlocked(std::unique_lock<std::mutex>& lock, const char* line) {
  lock.unlock();
  options_.log(line);
  lock.lock();
}

void ConsumerLoop::cancel() noexcept {
  for (auto& inbox : inboxes_) inbox.cancel();
}

/// A batch that is not done in time goes on, but its result no longer counts here: the next owner's copy
/// waits for it in the database, and is judged by it.
void ConsumerLoop::wait_until_idle(std::unique_lock<std::mutex>& lock,
                                   std::span<const PartitionId> partitions) {
  const auto idle = [&] {
    return all_ended() ||
           std::ranges::none_of(partitions, [&](const auto& id) { return backlog_.at_work(id); });
  };
  if (changed_.wait_for(lock, options_.drain_timeout, idle)) return;
  options_.log("rebalance_slow next=\"the batch at work is cancelled\"");
  lock.unlock();
  cancel();
  lock.lock();
  static_cast<void>(changed_.wait_for(lock, stall_after, idle));
}

/// The group is left before workers are joined: a handler that does not come back must not keep its
/// partitions from others.
void ConsumerLoop::shut_down(std::vector<std::thread>& workers) {
  {
    std::unique_lock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
    if (!workers_end_within(lock, options_.drain_timeout)) {
      say_unlocked(lock, "stop_slow next=\"the batch at work is cancelled\"");
      cancel();
      if (!workers_end_within(lock, cancel_patience))
        for (auto& inbox : inboxes_) inbox.abandon();
      if (!workers_end_within(lock, cancel_patience))
        say_unlocked(
            lock, "stop_waits next=\"a handler does not return: the group is left, and it is waited for\"");
    }
  }
  subscription_.close();  // revokes what is ours, and so commits what is done
  for (auto& worker : workers) worker.join();
}

}  // namespace outbox
