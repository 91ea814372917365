#pragma once
// Sends rows in Kafka transactions, exactly once (`delivery: exactly_once`): a producer and a ledger for each
// lane. What holds the promise, lane by lane: nothing is claimed before open() has fenced every other owner,
// what its ledger names is marked, and the database has confirmed the lease since; a transaction is committed
// only after the one before it is marked; and after any end that is not a clean commit the lane is opened
// again, which tells what became of its rows. So all that was committed earlier is marked when a claim looks,
// and the newest stands in the ledger.
//
//   absent ─ leased, old ledgers settled ─► opening ─► confirming ─► ready ─ rows ─► sending ─► ready (marked)
//      ▲                                       ▲            │                           │
//      └─ lease lost or given back             └── waiting ◄┴── an unclear end, an error ┘
//
// Part of Pipeline; the loop's thread.

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "relay/shell/marker.hpp"
#include "relay/shell/old_ledgers.hpp"
#include "relay/shell/queues.hpp"
#include "relay/shell/topics.hpp"

namespace outbox::relay {

class Transactions {
 public:
  Transactions(Workbench& bench, Transactor& transactor, const LaneLeases& leases, Topics& topics,
               Queues& queues, Marker& marker);

  void pump(MonoTime now);
  [[nodiscard]] MonoTime wake_at() const { return wake_at_; }

  /// Lanes that may be claimed: open, and not standing before a Kafka that does not answer.
  [[nodiscard]] LaneSet claimable(MonoTime now) const;
  /// Whether a row of a claim may be taken on: the claim began after its lane was ready.
  [[nodiscard]] bool takes(LaneId lane, ClaimSerial claim) const;
  /// The database has answered the request for leases with this number, asked later than all before it.
  void lease_confirmed(std::uint64_t request);
  /// Nothing more is sent; what is under way ends soon, and its rows are left to who has the lane then.
  void cut_off();
  void marked(const Row& row, Marker::Outcome outcome);

  /// Lanes that do not make progress: opened in vain, or not ready for long, or with a transaction that takes
  /// long.
  [[nodiscard]] std::vector<StoppedLane> stopped(MonoTime now) const;
  /// The one that stands still for the longest time.
  [[nodiscard]] std::optional<Health::Stopped> longest_stopped(MonoTime now) const;

 private:
  enum class State : std::uint8_t { absent, waiting, opening, confirming, ready, sending };
  struct Lane {
    State state = State::absent;
    Lease lease;
    LedgerLane ledger_lane;
    std::uint64_t life = 0;  // answers to an earlier one are left alone
    std::vector<Row*> rows;  // of the transaction under way, or whose end is not known
    std::unordered_map<Row*, RefusedMessage> refused;
    std::int64_t unmarked = 0;  // committed, and not marked yet
    bool ledger_marked = false;
    std::uint64_t confirm_from = 0;  // the request for leases that confirms it
    ClaimSerial ready_since;
    std::int64_t batch_bytes = 0;  // it was opened with
    MonoTime since{};              // of the state
    MonoTime well_at{};  // it was ready, or its transaction began; or it was taken; not while in vain
    MonoTime retry_at{};
    Backoff backoff{{Millis{50}, Millis{5000}}, 8};
    bool in_vain = false;  // a transaction failed, and none was committed since
    bool failing = false;
    bool slow = false;  // its transaction takes long, and that was said
    std::string why;
  };
  static std::size_t index(LaneId lane) { return static_cast<std::size_t>(lane.value); }
  [[nodiscard]] Lane& of(LaneId lane) { return lanes_[index(lane)]; }

  void follow_leases(MonoTime now);
  [[nodiscard]] bool none_held() const;
  void watch(Lane& lane, MonoTime now);
  void enter(Lane& lane, State state);
  void recovered(Lane& lane);
  void rest(Lane& lane, MonoTime now);
  void leave(Lane& lane);
  void open(Lane& lane);
  void opened(Lane& lane, Result<std::vector<LedgerRow>> answer);
  void decide(Lane& lane, const std::vector<LedgerRow>& named);
  void settle_refused(Row& row, const RefusedMessage& refused);
  void confirm(Lane& lane, MonoTime now);
  void failed(Lane& lane, const Error& error);
  void committed(Row& row, Partition partition, Offset offset);
  void fill(MonoTime now);
  [[nodiscard]] bool stays(const Topic& topic, const Row& row, Partition partition, bool careful);
  void send(Lane& lane);
  void ended(Lane& lane, TransactionEnd end);
  void drop_rows(Lane& lane);
  [[nodiscard]] bool stands_still(const Lane& lane, MonoTime now) const;
  [[nodiscard]] std::string why(const Lane& lane) const;
  [[nodiscard]] std::int64_t batch_bytes_of(const Topic& topic) const;

  struct Load {  // of a transaction that is being filled
    std::vector<Row*> rows;
    std::int64_t bytes = 0;
    bool full = false;
    std::set<std::pair<std::uint32_t, std::int32_t>> busy;  // careful topics: partitions with a row in it
  };

  Workbench& bench_;
  Transactor& transactor_;
  const LaneLeases& leases_;
  Topics& topics_;
  Queues& queues_;
  Marker& marker_;
  OldLedgers old_ledgers_;
  std::array<Lane, shard_count> lanes_{};
  std::array<Load, shard_count> loads_{};
  std::int64_t batch_bytes_ = 1'000'000;  // below the max.message.bytes of each topic in use
  MonoTime wake_at_ = MonoTime::max();
};

}  // namespace outbox::relay
