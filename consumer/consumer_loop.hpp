#pragma once
// The loop between a Subscription and an Inbox. The caller's thread polls Kafka, commits offsets, and never
// waits long for the database; one worker thread takes batches from the backlog and runs them. So polling
// goes on, and the group keeps its member, however long a handler or an outage takes.
//
// A partition whose message must be tried again is paused in Kafka and waits in the backlog; where the whole
// buffer is full for a second, every partition is paused. An offset is committed only when the batch that
// settled it has been committed in the database. Lifecycle: constructed → run() → destroyed.

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>

#include "consumer/core/backlog.hpp"
#include "consumer/subscription.hpp"
#include "outbox/consumer.hpp"

namespace outbox {

struct LoopOptions {
  BacklogLimits limits;
  Millis commit_interval{100};
  Millis drain_timeout{10'000};
  std::function<void(std::string_view)> log{};
};

/// Counters that any thread may read while the worker counts.
struct LiveCounters {
  std::atomic<std::uint64_t> fresh{0}, duplicate{0}, conflict{0}, dead{0}, retried{0}, batches{0};
  void count(std::span<const Outcome> outcomes);
  [[nodiscard]] Counters snapshot() const;
};

class ConsumerLoop {
 public:
  ConsumerLoop(Inbox& inbox, Subscription& subscription, LiveCounters& counters, LoopOptions options)
      : inbox_(inbox),
        subscription_(subscription),
        counters_(counters),
        options_(std::move(options)),
        backlog_(options_.limits) {}

  /// Until `stop`. Errors: ConsumerError.
  void run(const Handler& handler, const std::atomic<bool>& stop);

 private:
  // On the polling thread.
  void turn();
  void fetch();
  void wait_for_room(std::unique_lock<std::mutex>& lock);
  void adjust_pauses();
  void commit_soon();
  void commit_now();
  void assigned(std::span<const PartitionId> partitions);
  void revoked(std::span<const PartitionId> partitions, Revoked how);
  void wait_until_idle(std::unique_lock<std::mutex>& lock, std::span<const PartitionId> partitions);
  void shut_down(std::thread& worker);

  // On the worker's thread.
  void work(const Handler& handler) noexcept;
  bool work_once(const Handler& handler);
  void tell(std::span<const Outcome> outcomes, const Backlog::Batch& batch);

  Inbox& inbox_;
  Subscription& subscription_;
  LiveCounters& counters_;
  LoopOptions options_;

  std::mutex mutex_;  // guards the next five
  std::condition_variable changed_;
  Backlog backlog_;
  bool ending_ = false;
  bool worker_ended_ = false;
  std::exception_ptr worker_failure_;

  std::set<PartitionId> paused_;        // the polling thread's
  std::optional<MonoTime> full_since_;  // the polling thread's
  MonoTime commit_due_{};               // the polling thread's
  bool database_away_ = false;          // the worker's
};

}  // namespace outbox
