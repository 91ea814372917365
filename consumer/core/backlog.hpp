#pragma once
// Records that were fetched and are not yet done, by partition: what may be worked on now, what waits for its
// next try, and which offsets may be committed. Records stand in strands, whose order is kept: a batch takes
// from a strand's front, and what a batch could not settle goes back to the front. A strand is in at most one
// batch at a time. By Order::partition a partition is one strand, dealt to the worker that has the fewest
// when it is assigned; by Order::key it has a strand for each worker, and a record's key says which. An
// offset becomes committable when everything before it, in all strands of its partition, is settled. Pure:
// time is passed in. Not thread-safe.

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/backoff.hpp"
#include "outbox/consumer.hpp"

namespace outbox {

struct PartitionId {
  std::string topic;
  std::int32_t partition = 0;
  friend auto operator<=>(const PartitionId&, const PartitionId&) = default;
};
/// "transfers-0"
[[nodiscard]] std::string to_string(const PartitionId& id);

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
  Order order = Order::partition;
};

class Backlog {
 public:
  struct Batch {
    struct Slice {
      PartitionId partition;
      int strand = 0;
      std::uint64_t tenure = 0;  ///< of the partition, when the batch was taken
      std::size_t count = 0;
    };
    std::vector<Slice> slices;  ///< `records` belong to them in order
    std::vector<Fetched> records;
    [[nodiscard]] bool empty() const { return records.empty(); }
  };

  explicit Backlog(BacklogLimits limits) : limits_(limits) {}

  /// A new tenure: results of a batch from an earlier one are ignored. `epoch` goes into its records.
  void assign(const PartitionId& partition, std::int64_t epoch = 0);
  /// It takes part in no further batch; what is at work may finish.
  void retire(const PartitionId& partition);
  /// Forgets it, with what is queued.
  void revoke(const PartitionId& partition);

  /// Dropped without a word where the partition is not ours: its owner will fetch it.
  void push(Fetched record);

  /// Whether fetching should stop. A strand that waits for its next try does not count, since its partition
  /// is paused so that the others can go on; but all together may hold no more than twice the limits.
  [[nodiscard]] bool full() const;

  /// Shape: up to the limits, from strands that neither wait nor are at work, each in its order, taking
  /// turns. A record whose handler failed before is a batch alone. Empty: nothing can be done now.
  [[nodiscard]] Batch take(MonoTime now, int worker = 0);
  /// One outcome for each record of the batch. Of a strand, what is behind the first unsettled record goes
  /// back too.
  void finish(Batch batch, std::span<const Outcome> outcomes, MonoTime now);

  [[nodiscard]] bool at_work(const PartitionId& partition) const;
  [[nodiscard]] std::vector<PartitionId> assigned() const;
  /// Those with a strand that waits for its next try.
  [[nodiscard]] std::vector<PartitionId> waiting() const;
  /// The earliest moment at which one of the worker's is tried again.
  [[nodiscard]] std::optional<MonoTime> next_due(int worker = 0) const;

  /// Where each partition stands: its first record that is not settled, of those with any that was fetched.
  [[nodiscard]] std::vector<NextOffset> positions() const;

  /// What became committable since it was asked for last.
  [[nodiscard]] std::vector<NextOffset> take_commits();

 private:
  using StrandId = std::pair<PartitionId, int>;
  struct Strand {
    int worker = 0;
    std::deque<Fetched> records{};
    std::int64_t bytes = 0;  ///< queued
    bool at_work = false;
    std::optional<MonoTime> due{};  ///< set: waits
    Backoff backoff;
  };
  struct Partition {
    std::uint64_t tenure = 0;
    std::int64_t epoch = 0;
    bool retired = false;
    std::multiset<std::int64_t> unsettled{};  ///< offsets fetched and not yet settled
    std::int64_t settled = 0;                 ///< one behind the highest that is
    std::optional<std::int64_t> commit{};     ///< not yet taken
    std::optional<std::int64_t> next{};       ///< unset: nothing was fetched yet
  };
  [[nodiscard]] int strand_of(const Record& record) const;
  [[nodiscard]] int idlest_worker() const;
  void erase_strands(const PartitionId& partition);
  [[nodiscard]] bool takes_part(const StrandId& id, const Strand& strand, MonoTime now, int worker) const;
  void take_from(const StrandId& id, Strand& strand, Batch& batch, std::int64_t& bytes) const;
  static void settle(Partition& partition, std::span<const Fetched> records);
  static void put_back(Partition& partition, Strand& strand, std::span<Fetched> records,
                       std::span<const Outcome> outcomes, MonoTime now);

  BacklogLimits limits_;
  std::map<PartitionId, Partition> partitions_;
  std::map<StrandId, Strand> strands_;   ///< of the partitions above
  std::map<int, StrandId> last_served_;  ///< by worker
  std::uint64_t tenures_ = 0;
};

}  // namespace outbox
