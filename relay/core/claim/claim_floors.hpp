#pragma once
// Below which id a claim need not look, shard by shard. A row that was marked leaves a dead entry in the
// index of unsent rows; while an old snapshot is open somewhere these cannot be cleaned away, and a claim
// that starts at the index's beginning reads every one of them again, more each time. A floor lets it begin
// where the rows are.
//
// A floor is a cursor in disguise, and a cursor loses rows; so it is only moved past what was seen to be
// gone for good, and a row that may be unsent below it takes it back at once:
//  - a smaller id may be committed later. What a claim reached becomes the floor only after every transaction
//    that ran then has ended, and after one more claim with the old floor, which saw what they wrote. Where a
//    table lets an insert have its id before its transaction has a number, "then" is two seconds later;
//  - a row that was claimed and left PENDING takes the floor below itself (lower_to());
//  - rows that somebody else makes PENDING again (a release, a retry of a dead row) are counted by the
//    database; a claim carries the count that it knows, and where it is another one the database itself
//    ignores the floors, in the claim's own snapshot;
//  - whatever escapes all of that (a row changed by hand) is found by the sweep: the shards are looked at
//    without their floor by turns, each every sweep_every, or as often as two percent of the time allow.
// Floors are learned always and used only once a claim without them was slow: else nothing is left out of
// any. The sweeps tell when they are not needed any more, so no claim has to read everything to find out.
// Pure; one thread. A shard is in one claim at a time.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "relay/core/claim/claim_plan.hpp"
#include "relay/core/claim/flight.hpp"
#include "relay/core/types.hpp"

namespace outbox::relay {

class ClaimFloors {
 public:
  static constexpr Millis sweep_every{10'000};
  static constexpr int sweep_pause = 50;     ///< times its cost, until the next sweep
  static constexpr Millis sweep_burst{20};   ///< of costs in one claim that sweeps several shards
  static constexpr Millis used_for{60'000};  ///< at least, before the sweeps may end their use
  static constexpr Millis number_delay{
      2000};  ///< from an id to its transaction's number, at most, where ids come first

  /// `slow_look`: a claim without floors that takes longer has them used.
  explicit ClaimFloors(Micros slow_look) : slow_look_(slow_look) {}

  /// Shape: by shard number; rows with greater ids are wanted, RowId{0}: all. Empty: not used now. Some of
  /// `shards` that were not swept for long have no floor this time. `leases`: by lane; another epoch begins
  /// again.
  [[nodiscard]] std::vector<RowId> floors_for(std::span<const Shard> shards,
                                              std::span<const std::optional<Lease>> leases, MonoTime now);
  /// How often rows had been made PENDING again, as far as is known; goes with the floors.
  [[nodiscard]] std::int64_t releases() const { return releases_; }
  [[nodiscard]] bool in_use() const { return used_since_.has_value(); }

  /// A claim as it was sent.
  struct Sent {
    std::span<const Shard> shards;
    std::span<const RowId> floors;  ///< as floors_for() gave them
    Look look = Look::flat;
    MonoTime at;
  };
  /// It came back. Call it before its rows are dealt with.
  void claimed(const Sent& sent, const Batch& batch, MonoTime now);
  /// The row is unsent, and in nobody's hands any more.
  void lower_to(Shard shard, RowId id);
  /// Nothing is known: the connection was lost, or a batch was not taken on.
  void reset();

 private:
  struct CandidateFloor {
    RowId id;
    MonoTime at;
    std::optional<std::int64_t> next_transaction;  ///< those that ran then are below
    bool ended = false;                            ///< all of them have
  };
  struct ShardFloor {
    RowId floor;
    std::optional<CandidateFloor> candidate;
    RowId lowest_unsent = RowId{INT64_MAX};  ///< since the claim under way was sent
    Epoch epoch;
    MonoTime swept_at{};
  };
  struct Span {
    MonoTime sent;  ///< what the database says is of no earlier time
    MonoTime back;  ///< and of no later one
  };
  [[nodiscard]] static std::size_t at(Shard shard) { return static_cast<std::size_t>(shard.value); }
  void learn(ShardFloor& shard_floor, RowId reached, const ClaimHorizon& horizon, const Span& claim);
  [[nodiscard]] std::size_t sweeps_due(MonoTime now) const;
  void time(const Sent& sent, MonoTime now);
  void enable(Micros sweep_cost, MonoTime now);
  void time_sweeps(std::int64_t swept, Micros cost, MonoTime now);

  Micros slow_look_;
  std::array<ShardFloor, shard_count> shards_{};
  RowId highest_{};             // that any claim brought
  std::int64_t releases_ = -1;  // -1: not known

  std::optional<MonoTime> used_since_;  // or since they were last found to be needed
  std::array<Micros, 2> usual_{};       // what a claim takes that sweeps nothing, by its look; 0: not known
  Micros sweep_cost_{};                 // of one shard, beyond the usual: the last one's
  MonoTime sweep_at_{};                 // of the last one
  Micros swept_cost_{};                 // all of it since used_since_
  std::int64_t swept_ = 0;              // how many shards that were
};

}  // namespace outbox::relay
