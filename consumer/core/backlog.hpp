#pragma once
// Records that were fetched and are not yet done, by partition: what may be worked on now, what waits for its
// next try, and which offsets may be committed. It keeps the order of a partition: a batch takes from its
// front, and what a batch could not settle goes back to the front. A partition is in at most one batch at a
// time. Partitions are dealt to workers as they are assigned, each to the one that has the fewest. Pure: time
// is passed in. Not thread-safe.

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/backoff.hpp"
#include "outbox/inbox.hpp"

namespace outbox {

struct PartitionId {
  std::string topic;
  std::int32_t partition = 0;
  friend auto operator<=>(const PartitionId&, const PartitionId&) = default;
};

/// A record and what keeps its views alive.
struct Fetched {
  Record record;
  std::shared_ptr<const void> memory;
  std::int64_t bytes = 0;  ///< that it takes in memory, about
};

/// Everything before `next` is done.
struct NextOffset {
  PartitionId partition;
  std::int64_t next = 0;
  friend bool operator==(const NextOffset&, const NextOffset&) = default;
};

struct BacklogLimits {
  int batch_rows_max = 500;
  std::int64_t batch_bytes_max = 4 << 20;
  std::int64_t buffer_rows_max = 5000;
  std::int64_t buffer_bytes_max = 16 << 20;
  BackoffOptions backoff{};
  int workers = 1;
};

class Backlog {
 public:
  struct Batch {
    struct Slice {
      PartitionId partition;
      std::uint64_t tenure = 0;  ///< of the partition, when the batch was taken
      std::size_t count = 0;
    };
    std::vector<Slice> slices;  ///< `records` belong to them in order
    std::vector<Fetched> records;
    [[nodiscard]] bool empty() const { return records.empty(); }
  };

  explicit Backlog(BacklogLimits limits) : limits_(limits) {}

  /// A new tenure: results of a batch from an earlier one are ignored.
  void assign(const PartitionId& partition);
  /// It takes part in no further batch; what is at work may finish.
  void retire(const PartitionId& partition);
  /// Forgets it, with what is queued.
  void revoke(const PartitionId& partition);

  /// Dropped without a word where the partition is not ours: its owner will fetch it.
  void push(Fetched record);

  /// Whether fetching should stop. A partition that waits for its next try does not count, since it is paused
  /// so that the others can go on; but all together may hold no more than twice the limits.
  [[nodiscard]] bool full() const;

  /// Shape: up to the limits, from partitions that neither wait nor are at work, each in its order, taking
  /// turns. A record whose handler failed before is a batch alone. Empty: nothing can be done now.
  [[nodiscard]] Batch take(MonoTime now, int worker = 0);
  /// One outcome for each record of the batch. Of a partition, what is behind the first unsettled record goes
  /// back too.
  void finish(Batch batch, std::span<const Outcome> outcomes, MonoTime now);

  [[nodiscard]] bool at_work(const PartitionId& partition) const;
  [[nodiscard]] std::vector<PartitionId> assigned() const;
  /// Those that wait for their next try.
  [[nodiscard]] std::vector<PartitionId> waiting() const;
  /// The earliest moment at which one of the worker's is tried again.
  [[nodiscard]] std::optional<MonoTime> next_due(int worker = 0) const;

  /// Where each partition stands: its first record that is not settled, of those with any that was fetched.
  [[nodiscard]] std::vector<NextOffset> positions() const;

  /// What became committable since it was asked for last.
  [[nodiscard]] std::vector<NextOffset> take_commits();

 private:
  struct Queue {
    std::uint64_t tenure = 0;
    int worker = 0;
    std::deque<Fetched> records{};
    std::int64_t bytes = 0;  ///< queued
    bool at_work = false;
    bool retired = false;
    std::optional<MonoTime> due{};  ///< set: waits
    Backoff backoff;
    std::optional<std::int64_t> commit{};  ///< not yet taken
    std::optional<std::int64_t> next{};    ///< unset: nothing was fetched yet
  };
  [[nodiscard]] int idlest_worker() const;
  void take_from(const PartitionId& id, Queue& queue, Batch& batch, std::int64_t& bytes) const;
  static void put_back(Queue& queue, std::span<Fetched> records, std::span<const Outcome> outcomes,
                       MonoTime now);

  BacklogLimits limits_;
  std::map<PartitionId, Queue> queues_;
  std::map<int, PartitionId> last_served_;  ///< by worker
  std::uint64_t tenures_ = 0;
};

}  // namespace outbox
