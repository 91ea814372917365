#pragma once
// Which lanes this process may work, and for how long. Judged by the process's own monotonic clock and
// counted from before the leases were asked for, so that a slow answer, a jump of the wall clock or a paused
// process can only shorten it. One request renews all lanes, so they all end at one moment. Pure.
//
// A lane here (in the database it has an owner, an epoch and a time):
//
//            in an answer, epoch above `given`          more than the share
//   not ours ─────────────────────────────────► working ────────────────────► draining
//      ▲  ▲                                        │                             │
//      │  └── its time is up, or an answer ────────┴─────────────────────────────┤
//      │      without it: ended, all of them                                     │ give(): nothing in flight
//      └─────────────────────────────────────────────────────────────────────────┘
//
// What was given back under an epoch is never worked under it again, whatever a late answer says.

#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "relay/core/types.hpp"

namespace outbox::relay {

/// An answer to a request for leases.
struct LeaseAnswer {
  std::span<const Lease> held;
  std::int16_t lanes = 1;  ///< into how many the shards are dealt
  std::int16_t share = 0;
  std::optional<Millis> other_ends{};  ///< when the first lease of another runs out
};

class LaneLeases {
 public:
  enum class Change {
    none,
    renewed,
    gained,  ///< lanes that were not ours before; the others go on
    ended,   ///< nothing is ours any more: purge, and begin again with an empty flight
  };

  LaneLeases(Millis ttl, std::int16_t lanes) : ttl_(ttl), lanes_(lanes) {}

  /// Time for a request: every third of the ttl; sooner after a failure, after a hint, or when another's
  /// lease runs out.
  [[nodiscard]] bool request_due(MonoTime now) const { return !asking_ && now >= next_request_; }
  void requested(MonoTime now);
  Change answered(const LeaseAnswer& answer, MonoTime now);
  void failed(MonoTime now);
  /// Something may have changed: ask soon.
  void hint(MonoTime now);
  /// Ends it where its time has run out.
  Change expire(MonoTime now);

  [[nodiscard]] bool active() const { return held_any_; }
  /// When it ends unless renewed; only while active.
  [[nodiscard]] MonoTime ends_at() const { return ends_at_; }
  [[nodiscard]] MonoTime next_request() const { return next_request_; }
  [[nodiscard]] bool asking() const { return asking_; }

  [[nodiscard]] std::int16_t lanes() const { return lanes_; }
  /// What may be claimed: one entry a lane, by lane number; nullopt: not ours, or draining.
  [[nodiscard]] std::span<const std::optional<Lease>> leases() const {
    return std::span{working_}.first(static_cast<std::size_t>(lanes_));
  }
  [[nodiscard]] LaneSet working() const;
  /// More than our share: to be given back as soon as nothing of them is in flight.
  [[nodiscard]] LaneSet draining() const { return draining_; }
  /// Working or draining.
  [[nodiscard]] bool holds(LaneId lane) const { return held_[index(lane)].has_value(); }
  [[nodiscard]] const std::optional<Lease>& held(LaneId lane) const { return held_[index(lane)]; }
  /// A draining lane is being given back, under the lease that is returned.
  Lease give(LaneId lane);
  /// Given back, and in the latest answer all the same: to be given back again. Taken once.
  [[nodiscard]] std::vector<Lease> take_unheard() { return std::exchange(unheard_, {}); }

 private:
  using Leases = std::array<std::optional<Lease>, static_cast<std::size_t>(shard_count)>;
  static std::size_t index(LaneId lane) { return static_cast<std::size_t>(lane.value); }
  void schedule(const LeaseAnswer& answer, MonoTime now);
  [[nodiscard]] std::vector<Lease> not_given(std::span<const Lease> held);
  [[nodiscard]] bool all_among(std::span<const Lease> held) const;
  void drain_surplus(std::int16_t share);
  void set_working();
  Change end();

  Millis ttl_;
  std::int16_t lanes_;
  Leases held_{};
  Leases working_{};  // of held_, what is not draining
  LaneSet draining_{};
  std::array<Epoch, static_cast<std::size_t>(shard_count)> given_{};  // the latest that was given back
  std::vector<Lease> unheard_;
  bool held_any_ = false;
  bool asking_ = false;
  bool again_ = false;  // a hint came while a request was under way
  MonoTime asked_at_{};
  MonoTime ends_at_{};
  MonoTime next_request_{};
};

}  // namespace outbox::relay
