#pragma once
// When to look for rows, and how. Two modes: while there is little, one flat look for all lanes, paced by
// what it finds; under backlog each lane claims for itself, so that claiming, publishing and marking of
// different lanes overlap. A flat look and a lane's claim are never under way at once: two claims over one
// shard could both bring a row. Pure: time and load are passed in. One thread.
//
//            look cut short                     hint, or a row found
//   quiet ──────────────────► backlog   asleep ─────────────────────► quiet
//     ▲      all lanes dry      │         ▲    nothing for awake_for    │
//     └─────────────────────────┘         └─────────────────────────────┘

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>

#include "base/backoff.hpp"
#include "relay/core/claim/flight.hpp"

namespace outbox::relay {

struct ClaimLimits {
  std::int16_t lanes = 8;
  std::int32_t batch_rows = 5000;        ///< of a lane's claim
  std::int64_t batch_bytes = 8 << 20;    ///< of bodies in one claim
  std::int32_t flat_rows = 500;          ///< of a flat look; more than that is backlog
  std::int64_t in_flight_rows = 20'000;  ///< at least batch_rows
  std::int64_t in_flight_bytes = 64 << 20;
  Millis poll_interval{250};     ///< between looks while asleep
  Micros look_interval{1000};    ///< between flat looks while rows keep coming
  Millis awake_for{50};          ///< without a row, before falling asleep
  Millis stalled_after{200};     ///< then a lane claims past its unreported rows
  Millis crowded_interval{100};  ///< between rounds of the lanes while too much is away for a flat look
};

enum class Look {
  flat,      ///< one look over the index for all shards, by (shard, id): cheap while there is little
  by_shard,  ///< a probe of rows_max / shards rows for each shard: fair under backlog
};

struct Claim {
  ClaimSerial serial;
  Look look = Look::flat;
  std::optional<LaneId> lane;  ///< nullopt: all lanes
  std::int32_t rows_max = 0;
  std::int64_t bytes_max = 0;
};

/// What became of a claim's rows.
struct ClaimYield {
  std::int64_t rows = 0;     ///< taken on for publishing
  std::int64_t dropped = 0;  ///< brought, and left for a later claim (held, blocked)
  bool more = false;
  std::optional<Millis> next_due{};  ///< a scheduled row comes due in this time
};

class ClaimPlan {
 public:
  /// Begins with all lanes of the limits.
  explicit ClaimPlan(ClaimLimits limits);

  /// Which lanes are claimed from now on, of how many. Claims under way still answer.
  void set_lanes(std::int16_t lanes, LaneSet working);
  /// A claim under way may still bring rows of this lane.
  [[nodiscard]] bool covers(LaneId lane) const;

  /// The next claim to start now, if any; call until it answers nullopt.
  [[nodiscard]] std::optional<Claim> next(MonoTime now, const Flight& flight);
  void claimed(const Claim& claim, const ClaimYield& yield, MonoTime now);
  void failed(const Claim& claim, MonoTime now);
  /// A NOTIFY came: look at once.
  void hint(MonoTime now);
  /// One look soon, without waking: the asleep flag is set, and a row may have come just before.
  void look_once() { hinted_ = true; }
  /// Begins again, with an empty flight: after lanes were leased or a producer was replaced. Claims under way
  /// still answer.
  void reset(MonoTime now);

  /// When next() may answer otherwise without an event in between.
  [[nodiscard]] MonoTime wake_at() const { return not_before_; }
  [[nodiscard]] bool asleep() const { return mode_ == Gait::asleep; }
  [[nodiscard]] ClaimSerial newest() const { return ClaimSerial{next_serial_ - 1}; }
  /// The oldest claim under way, or the next one's serial.
  [[nodiscard]] ClaimSerial oldest_open() const;
  [[nodiscard]] bool idle() const { return open_.empty(); }

 private:
  enum class Gait { quiet, backlog, asleep };
  struct LanePace {
    bool claiming = false;
    bool dry = false;
    MonoTime not_before{};
  };

  [[nodiscard]] std::optional<Claim> next_flat(MonoTime now, const Flight& flight);
  [[nodiscard]] std::optional<Claim> next_crowded(MonoTime now, const Flight& flight);
  [[nodiscard]] std::optional<Claim> next_of_lanes(MonoTime now, const Flight& flight);
  [[nodiscard]] bool all_dry() const;
  [[nodiscard]] bool lane_ready(std::int16_t lane, MonoTime now, const Flight& flight);
  [[nodiscard]] std::optional<Claim> start(Look look, std::optional<LaneId> lane, std::int32_t rows,
                                           const Flight& flight);
  void close(const Claim& claim);
  void flat_claimed(const ClaimYield& yield, MonoTime now);
  void lane_claimed(LaneId lane, const ClaimYield& yield, MonoTime now);
  void earlier(MonoTime when);

  ClaimLimits limits_;
  std::int16_t lane_count_;
  LaneSet working_;
  Backoff retry_;
  Gait mode_ = Gait::quiet;
  std::array<LanePace, shard_count> lanes_{};
  std::int16_t first_lane_ = 0;  // where the next round begins, so that each lane gets its turn
  std::set<std::uint64_t> open_;
  bool flat_open_ = false;
  std::int64_t reserved_bytes_ = 0;
  std::int64_t reserved_rows_ = 0;
  std::uint64_t next_serial_ = 1;
  bool hinted_ = false;
  int empty_looks_ = 0;
  MonoTime last_row_{};
  MonoTime look_at_{};     // the next flat look
  MonoTime crowded_at_{};  // the next round of the lanes in place of a flat look
  MonoTime retry_at_{};    // after a failure nothing starts before
  MonoTime not_before_{};  // for wake_at()
};

/// The shards of these lanes, of `lane_count`, rising.
[[nodiscard]] std::vector<Shard> shards_of(const LaneSet& lanes, std::int16_t lane_count);

}  // namespace outbox::relay
