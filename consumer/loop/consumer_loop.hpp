#pragma once
// The loop between a Subscription and an Inbox. The caller's thread polls Kafka, commits offsets, and never
// waits long for the database; worker threads take batches from the backlog and run them, each on an inbox of
// its own and for partitions of its own. So polling goes on, and the group keeps its member, however long a
// handler or an outage takes.
//
// A partition whose message must be tried again is paused in Kafka and waits in the backlog; where the whole
// buffer is full for a second, every partition is paused. An offset is committed only when the batch that
// settled it has been committed in the database. Lifecycle: constructed → run() → destroyed.

#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "consumer/core/backlog.hpp"
#include "consumer/core/subscription.hpp"
#include "outbox/consumer.hpp"

namespace outbox {

struct LoopOptions {
  BacklogLimits limits;
  Millis commit_interval{100};
  Millis drain_timeout{10'000};
  Millis dead_retry_interval{1000};  ///< 0: never
  int attempts_max = 10;             ///< as the inbox has it: to say once that a message blocks
  /// Of offsets that are kept in the database; empty: they are not. Errors: SqlError.
  std::function<PartitionClaim(const PartitionId&)> claim{};
  std::shared_ptr<Metrics> metrics{};
  std::function<void(std::string_view)> log{};
};

/// What a worker does with its inbox: Inbox::process() and Inbox::retry_dead() with the service's handler.
struct LoopWork {
  std::function<std::vector<Outcome>(Inbox&, std::span<const Record>)> process;
  std::function<std::vector<Outcome>(Inbox&)> retry_dead;
};
/// Refers to `handler`. AnyHandler: Handler or SpanHandler.
template <class AnyHandler>
[[nodiscard]] LoopWork loop_work(const AnyHandler& handler) {
  return {[&](Inbox& inbox, std::span<const Record> records) { return inbox.process(records, handler); },
          [&](Inbox& inbox) { return inbox.retry_dead(handler); }};
}

/// Counters that any thread may read while the worker counts.
struct LiveCounters {
  std::atomic<std::uint64_t> fresh{0}, duplicate{0}, conflict{0}, expired{0}, stale{0}, malformed{0}, dead{0},
      parked{0}, revived{0}, blocked{0}, retried{0}, batches{0};
  void count(std::span<const Outcome> outcomes);
  void count_revived(std::span<const Outcome> outcomes);
  [[nodiscard]] Counters snapshot() const;
};

class ConsumerLoop {
 public:
  /// One worker for each inbox, which must be as many as options.limits.workers.
  ConsumerLoop(std::span<Inbox> inboxes, Subscription& subscription, LiveCounters& counters,
               LoopOptions options)
      : inboxes_(inboxes),
        subscription_(subscription),
        counters_(counters),
        options_(std::move(options)),
        backlog_(options_.limits) {}

  /// Until `stop`. Errors: ConsumerError.
  void run(const LoopWork& work, const std::atomic<bool>& stop);

 private:
  // On the polling thread.
  void turn();
  void fetch();
  void wait_for_room(std::unique_lock<std::mutex>& lock);
  void adjust_pauses();
  void commit_soon();
  void measure_lag();
  void forget_lag(std::span<const PartitionId> partitions);
  void commit_now();
  Result<Subscription::Starts> claim(std::span<const PartitionId> partitions, const std::atomic<bool>& stop);
  Result<PartitionClaim> claim_one(const PartitionId& partition, const std::atomic<bool>& stop);
  void assigned(std::span<const PartitionId> partitions);
  void revoked(std::span<const PartitionId> partitions, Revoked how);
  void wait_until_idle(std::unique_lock<std::mutex>& lock, std::span<const PartitionId> partitions);
  void shut_down(std::vector<std::thread>& workers);
  bool workers_end_within(std::unique_lock<std::mutex>& lock, Millis patience);
  void say_unlocked(std::unique_lock<std::mutex>& lock, const char* line);
  void cancel() noexcept;
  [[nodiscard]] bool all_ended() const { return workers_ended_ == std::ssize(inboxes_); }

  /// What a worker's thread alone touches.
  struct Worker {
    int number = 0;
    Inbox& inbox;
    MonoTime dead_retry_due{};
    bool database_away = false;
  };
  // On a worker's thread.
  void work(Worker worker, const LoopWork& work) noexcept;
  bool work_once(Worker& worker, const LoopWork& work);
  bool stops();
  void retry_dead(Worker& worker, const LoopWork& work);
  Backlog::Batch wait_for_batch(Worker& worker, std::unique_lock<std::mutex>& lock);
  void measure(std::span<const Outcome> outcomes, MonoTime start);
  void measure_revived(std::span<const Outcome> outcomes);
  void tell(Worker& worker, std::span<const Outcome> outcomes, const Backlog::Batch& batch);

  std::span<Inbox> inboxes_;
  Subscription& subscription_;
  LiveCounters& counters_;
  LoopOptions options_;

  std::mutex mutex_;  // guards the next six
  std::condition_variable changed_;
  Backlog backlog_;
  bool ending_ = false;
  bool fenced_ = false;  ///< the group is to be joined again
  int workers_ended_ = 0;
  std::exception_ptr worker_failure_;

  std::map<PartitionId, std::int64_t> epochs_;  // the polling thread's
  std::set<PartitionId> paused_;                // the polling thread's
  std::optional<MonoTime> full_since_;          // the polling thread's
  MonoTime commit_due_{};                       // the polling thread's
  MonoTime lag_due_{};                          // the polling thread's
};

}  // namespace outbox
