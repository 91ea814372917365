#include "relay/core/claim/claim_plan.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace outbox::relay {
namespace {

constexpr Millis dry_lane_pause{5};
constexpr Millis dropped_pause{10};  // what a claim brought had to be left: give its hold time to be written
constexpr std::int64_t except_max = 4000;      // ids a flat look may have to leave out
constexpr std::int64_t bytes_min = 256 << 10;  // a claim for less would only fetch crumbs

}  // namespace

std::vector<Shard> shards_of(const LaneSet& lanes, std::int16_t lane_count) {
  std::vector<Shard> shards;
  for (std::int16_t s = 0; s < shard_count; ++s)
    if (lanes.test(static_cast<std::size_t>(lane_of(Shard{s}, lane_count).value))) shards.emplace_back(s);
  return shards;
}

ClaimPlan::ClaimPlan(ClaimLimits limits)
    : limits_(limits), lane_count_(limits.lanes), retry_({Millis{50}, Millis{5000}}, 1) {
  for (std::int16_t lane = 0; lane < limits.lanes; ++lane) working_.set(static_cast<std::size_t>(lane));
}

void ClaimPlan::set_lanes(std::int16_t lanes, LaneSet working) {
  lane_count_ = lanes;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
    if (working.test(lane) && !working_.test(lane)) lanes_[lane] = LanePace{lanes_[lane].claiming, false, {}};
  working_ = working;
}

bool ClaimPlan::covers(LaneId lane) const {
  return flat_open_ || lanes_[static_cast<std::size_t>(lane.value)].claiming;
}

void ClaimPlan::earlier(MonoTime when) {
  not_before_ = std::min(not_before_, when);
}

std::optional<Claim> ClaimPlan::next(MonoTime now, const Flight& flight) {
  not_before_ = MonoTime::max();
  if (working_.none()) return std::nullopt;
  if (now < retry_at_) {
    earlier(retry_at_);
    return std::nullopt;
  }
  return mode_ == Gait::backlog ? next_of_lanes(now, flight) : next_flat(now, flight);
}

std::optional<Claim> ClaimPlan::next_flat(MonoTime now, const Flight& flight) {
  if (!open_.empty() || flight.load_rows_of(working_) > except_max) return std::nullopt;
  if (!hinted_ && now < look_at_) {
    earlier(look_at_);
    return std::nullopt;
  }
  if (flight.left_out(working_) > except_max) return next_crowded(now, flight);
  auto claim = start(Look::flat, std::nullopt, limits_.flat_rows, flight);
  if (claim) hinted_ = false;
  flat_open_ = claim.has_value();
  return claim;
}

// Rows of partitions that are away are left out of each claim, and are too many for one look: the lanes look,
// each leaving out its own.
std::optional<Claim> ClaimPlan::next_crowded(MonoTime now, const Flight& flight) {
  if (now < crowded_at_) {
    earlier(crowded_at_);
    return std::nullopt;
  }
  crowded_at_ = now + limits_.crowded_interval;
  hinted_ = false;
  mode_ = Gait::backlog;
  for (LanePace& lane : lanes_) lane.dry = false;
  return next_of_lanes(now, flight);
}

bool ClaimPlan::lane_ready(std::int16_t lane, MonoTime now, const Flight& flight) {
  const LanePace& pace = lanes_[static_cast<std::size_t>(lane)];
  if (pace.claiming || !working_.test(static_cast<std::size_t>(lane))) return false;
  if (now < pace.not_before) {
    earlier(pace.not_before);
    return false;
  }
  const std::int64_t in_flight = flight.load_rows_of(LaneId{lane});
  if (in_flight == 0) return true;
  const MonoTime stalled_from = flight.admitted_at(LaneId{lane}) + limits_.stalled_after;
  if (now < stalled_from) {
    earlier(stalled_from);
    return false;
  }
  return in_flight < limits_.batch_rows;
}

std::optional<Claim> ClaimPlan::next_of_lanes(MonoTime now, const Flight& flight) {
  for (std::int16_t turn = 0; turn < lane_count_; ++turn) {
    const auto lane = static_cast<std::int16_t>((first_lane_ + turn) % lane_count_);
    if (!lane_ready(lane, now, flight)) continue;
    auto claim = start(Look::by_shard, LaneId{lane}, limits_.batch_rows, flight);
    if (!claim) return std::nullopt;  // the budget is spent: an ack will free some
    lanes_[static_cast<std::size_t>(lane)].claiming = true;
    first_lane_ = static_cast<std::int16_t>((lane + 1) % lane_count_);
    return claim;
  }
  return std::nullopt;
}

std::optional<Claim> ClaimPlan::start(Look look, std::optional<LaneId> lane, std::int32_t rows,
                                      const Flight& flight) {
  const std::int64_t rows_left = limits_.in_flight_rows - flight.load_rows() - reserved_rows_;
  // What is away keeps its memory: as much again as the budget, and no more.
  const std::int64_t bytes = std::max(flight.load_bytes(), flight.bytes() - limits_.in_flight_bytes);
  const std::int64_t bytes_left = limits_.in_flight_bytes - bytes - reserved_bytes_;
  if (rows_left < rows || bytes_left < std::min(bytes_min, limits_.batch_bytes)) return std::nullopt;
  const Claim claim{ClaimSerial{next_serial_++}, look, lane, rows, std::min(limits_.batch_bytes, bytes_left)};
  open_.insert(claim.serial.value);
  reserved_rows_ += claim.rows_max;
  reserved_bytes_ += claim.bytes_max;
  return claim;
}

void ClaimPlan::close(const Claim& claim) {
  OUTBOX_CHECK(open_.erase(claim.serial.value) == 1, "a claim answers once");
  reserved_rows_ -= claim.rows_max;
  reserved_bytes_ -= claim.bytes_max;
  if (claim.lane)
    lanes_[static_cast<std::size_t>(claim.lane->value)].claiming = false;
  else
    flat_open_ = false;
}

void ClaimPlan::claimed(const Claim& claim, const ClaimYield& yield, MonoTime now) {
  close(claim);
  retry_.reset();
  if (yield.rows > 0) last_row_ = now;
  if (claim.lane)
    lane_claimed(*claim.lane, yield, now);
  else
    flat_claimed(yield, now);
}

void ClaimPlan::flat_claimed(const ClaimYield& yield, MonoTime now) {
  if (yield.more) {
    mode_ = Gait::backlog;
    for (LanePace& lane : lanes_) lane = LanePace{};
    if (yield.rows == 0)  // all of it was left: do not spin
      for (LanePace& lane : lanes_) lane.not_before = now + dropped_pause;
    return;
  }
  if (yield.rows > 0) {
    mode_ = Gait::quiet;
    empty_looks_ = 0;
    look_at_ = now + limits_.look_interval;
  } else if (now - last_row_ >= limits_.awake_for) {
    look_at_ = now + limits_.poll_interval;
    mode_ = Gait::asleep;
  } else {
    empty_looks_ = std::min(empty_looks_ + 1, 3);
    look_at_ = now + limits_.look_interval * (1 << (empty_looks_ - 1));
  }
  if (yield.dropped > 0) look_at_ = std::max(look_at_, now + dropped_pause);
  if (yield.next_due) look_at_ = std::min(look_at_, now + std::max(*yield.next_due, Millis{1}));
}

void ClaimPlan::lane_claimed(LaneId lane, const ClaimYield& yield, MonoTime now) {
  LanePace& pace = lanes_[static_cast<std::size_t>(lane.value)];
  pace.dry = !yield.more;
  if (pace.dry || yield.rows == 0)
    pace.not_before = now + (yield.dropped > 0 ? dropped_pause : dry_lane_pause);
  if (mode_ != Gait::backlog || !all_dry()) return;
  mode_ = Gait::quiet;
  empty_looks_ = 0;
  last_row_ = now;
  look_at_ = now + limits_.look_interval;
}

bool ClaimPlan::all_dry() const {
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
    if (working_.test(lane) && !lanes_[lane].dry) return false;
  return true;
}

void ClaimPlan::failed(const Claim& claim, MonoTime now) {
  close(claim);
  retry_at_ = now + retry_.next();
}

void ClaimPlan::hint(MonoTime now) {
  hinted_ = true;
  if (mode_ == Gait::asleep) {
    mode_ = Gait::quiet;
    last_row_ = now;
    empty_looks_ = 0;
  }
}

void ClaimPlan::reset(MonoTime now) {
  mode_ = Gait::quiet;
  for (LanePace& lane : lanes_) lane = LanePace{lane.claiming, false, {}};
  last_row_ = now;
  look_at_ = now;
  retry_at_ = now;
}

ClaimSerial ClaimPlan::oldest_open() const {
  return ClaimSerial{open_.empty() ? next_serial_ : *open_.begin()};
}

}  // namespace outbox::relay
