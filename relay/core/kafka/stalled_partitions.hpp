#pragma once
// The partitions of one topic that do not answer, so that they stop nobody else. A partition that owes
// reports and has given none for a while is away: what Kafka has of it stays there and counts for nobody's
// budget, and further rows of it are set aside, by their names alone. With its first report it is back, and
// what was set aside is left to later claims, which bring it in order.
//
// Claims under way at that moment left out what was set aside, and may bring later rows of the same keys:
// they are closed out, here and until the last of them has come back. Part of a Topic; pure, one thread.

#include <cstdint>
#include <vector>

#include "relay/core/claim/flight.hpp"

namespace outbox::relay {

struct Deferred {
  RowName row;
  Shard shard;
  LaneId lane;
};

class StalledPartitions {
 public:
  void published(Partition partition, MonoTime now);
  /// A report of whatever kind. True: the partition was away, and is back.
  [[nodiscard]] bool reported(Partition partition, MonoTime now);
  /// Those that became away: they owe a report, and gave none for `patience`.
  [[nodiscard]] std::vector<Partition> overdue(MonoTime now, Millis patience);
  /// When to ask overdue() again, or sooner; MonoTime::max(): nothing is owed.
  [[nodiscard]] MonoTime wake_at(Millis patience) const;
  [[nodiscard]] bool away(Partition partition) const;
  [[nodiscard]] std::int64_t away_count() const { return away_; }
  [[nodiscard]] bool owes(Partition partition) const;
  /// How many partitions owe reports.
  [[nodiscard]] std::int64_t owing() const { return owing_; }

  void defer(Partition partition, const Deferred& row) { of(partition).deferred.push_back(row); }
  /// Takes out what was set aside: of one partition, or what is of these lanes.
  [[nodiscard]] std::vector<Deferred> take(Partition partition);
  [[nodiscard]] std::vector<Deferred> take(const LaneSet& lanes);

  /// Rows of the partition, or of the topic, were left to later claims: nothing may pass them that a claim up
  /// to `newest_open` brings.
  void close(Partition partition, ClaimSerial newest_open);
  void close(ClaimSerial newest_open);
  /// Keys go to other partitions from now on: a claim that was closed out for one is so for all.
  void close_where_any() { closed_ = latest_closed_; }
  /// False: the claim is closed out for no partition.
  [[nodiscard]] bool any_closed(ClaimSerial claim) const { return claim <= latest_closed_; }
  [[nodiscard]] bool closed(ClaimSerial claim) const { return claim <= closed_; }
  [[nodiscard]] bool closed(Partition partition, ClaimSerial claim) const;

 private:
  struct State {
    std::int64_t owed = 0;  // reports
    MonoTime quiet_since{};
    bool away = false;
    ClaimSerial closed{};
    std::vector<Deferred> deferred;
  };
  [[nodiscard]] State& of(Partition partition);
  [[nodiscard]] const State* find(Partition partition) const;

  std::vector<State> of_;  // by partition
  std::int64_t away_ = 0;
  std::int64_t owing_ = 0;
  MonoTime quiet_since_ = MonoTime::max();  // no partition that owes and is not away is quiet for longer
  ClaimSerial closed_{};                    // for all partitions
  ClaimSerial latest_closed_{};             // for any
};

}  // namespace outbox::relay
