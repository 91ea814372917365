#pragma once
// The partitions of one topic that do not answer, so that they stop nobody else. A partition that owes
// reports and has given none for a while is away: what Kafka has of it stays there and counts for nobody's
// budget, and further rows of it are set aside, by their ids alone. With its first report it is back, and
// what was set aside is left to later claims, which bring it in order. Used by Publisher, on the loop's
// thread.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "relay/core/flight.hpp"

namespace outbox::relay {

struct Aside {
  RowId row;
  Shard shard;
  LaneId lane;
};

class Stragglers {
 public:
  void published(Partition partition, MonoTime now);
  /// A report of whatever kind. True: the partition was away, and is back.
  [[nodiscard]] bool reported(Partition partition, MonoTime now);
  /// Those that became away: they owe a report, and gave none for `patience`.
  [[nodiscard]] std::vector<Partition> overdue(MonoTime now, Millis patience);
  /// When to ask overdue() again; MonoTime::max(): nothing is owed.
  [[nodiscard]] MonoTime wake_at(Millis patience) const;
  [[nodiscard]] bool away(Partition partition) const;
  [[nodiscard]] std::int64_t away_count() const;

  void set_aside(Partition partition, const Aside& row) { of_[partition.value].aside.push_back(row); }
  /// Takes out what was set aside: of one partition, or what is of these lanes.
  [[nodiscard]] std::vector<Aside> take(Partition partition);
  [[nodiscard]] std::vector<Aside> take(const LaneSet& lanes);

  /// Claims up to `newest_open` left out what was set aside: nothing that they bring may pass it.
  void close(ClaimSerial newest_open) { closed_up_to_ = newest_open; }
  [[nodiscard]] bool closed(ClaimSerial claim) const { return claim <= closed_up_to_; }

 private:
  struct State {
    std::int64_t owed = 0;  // reports
    MonoTime quiet_since{};
    bool away = false;
    std::vector<Aside> aside;
  };
  std::map<std::int32_t, State> of_;
  ClaimSerial closed_up_to_{};
};

}  // namespace outbox::relay
