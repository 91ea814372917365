#include "relay/core/lanes/lane_leases.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace outbox::relay {
namespace {

constexpr Millis look_again{50};  // at another's lease that has run out, or is about to

}  // namespace

void LaneLeases::requested(MonoTime now) {
  asking_ = true;
  asked_at_ = now;
}

void LaneLeases::hint(MonoTime now) {
  if (asking_)
    again_ = true;
  else
    next_request_ = std::min(next_request_, now);
}

void LaneLeases::schedule(const LeaseAnswer& answer, MonoTime now) {
  next_request_ = asked_at_ + ttl_ / 3;
  if (answer.other_ends)
    next_request_ = std::min(next_request_, now + std::max(*answer.other_ends, look_again));
  if (again_) next_request_ = now;
  again_ = false;
}

// An answer may be older than what was given back since it was asked for.
std::vector<Lease> LaneLeases::not_given(std::span<const Lease> held) {
  std::vector<Lease> ours;
  unheard_.clear();
  for (const Lease& lease : held)
    (lease.epoch > given_.at(index(lease.lane)) ? ours : unheard_).push_back(lease);
  return ours;
}

bool LaneLeases::all_among(std::span<const Lease> held) const {
  return std::all_of(held_.begin(), held_.end(), [&](const std::optional<Lease>& mine) {
    return !mine || std::any_of(held.begin(), held.end(), [&](const Lease& lease) {
      return lease.lane == mine->lane && lease.epoch == mine->epoch;
    });
  });
}

LaneLeases::Change LaneLeases::answered(const LeaseAnswer& answer, MonoTime now) {
  asking_ = false;
  schedule(answer, now);
  const std::vector<Lease> ours = not_given(answer.held);
  const MonoTime ends = asked_at_ + ttl_ - ttl_ / 10;  // a tenth in hand for what is under way
  const bool same_lanes = std::exchange(lanes_, answer.lanes) == answer.lanes;
  if (now >= ends) {  // the answer came too late to act on: ask again before working
    next_request_ = now;
    return end();
  }
  if (active() && (!same_lanes || !all_among(ours))) {
    // Somebody else had one in between: what is in flight was claimed under a lost lease.
    next_request_ = now;
    return end();
  }
  ends_at_ = ends;
  const bool had = active();
  bool more = false;
  for (const Lease& lease : ours) {
    more = more || !held_[index(lease.lane)];
    held_[index(lease.lane)] = lease;
  }
  drain_surplus(answer.share);
  if (more) return Change::gained;
  return had ? Change::renewed : Change::none;
}

// From the last lane down. A lane that drains does so to its end, also where the share rose meanwhile: rows
// of it were left for a later claim, and one that is under way does not bring them.
void LaneLeases::drain_surplus(std::int16_t share) {
  const auto count = std::count_if(held_.begin(), held_.end(), [](const auto& l) { return l.has_value(); });
  const auto surplus = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, count - share));
  for (std::size_t lane = held_.size(); lane-- > 0 && draining_.count() < surplus;)
    if (held_[lane]) draining_.set(lane);
  set_working();
}

void LaneLeases::set_working() {
  held_any_ = false;
  for (std::size_t lane = 0; lane < held_.size(); ++lane) {
    working_[lane] = draining_.test(lane) ? std::nullopt : held_[lane];
    held_any_ = held_any_ || held_[lane];
  }
}

LaneSet LaneLeases::working() const {
  LaneSet out;
  for (std::size_t lane = 0; lane < working_.size(); ++lane) out.set(lane, working_[lane].has_value());
  return out;
}

Lease LaneLeases::give(LaneId lane) {
  OUTBOX_CHECK(draining_.test(index(lane)), "only a lane that drains is given back");
  const Lease lease = held_[index(lane)].value();
  given_[index(lane)] = lease.epoch;
  held_[index(lane)].reset();
  draining_.reset(index(lane));
  set_working();
  return lease;
}

void LaneLeases::failed(MonoTime now) {
  asking_ = false;
  again_ = false;
  next_request_ = now + ttl_ / 10;
}

LaneLeases::Change LaneLeases::expire(MonoTime now) {
  return active() && now >= ends_at_ ? end() : Change::none;
}

LaneLeases::Change LaneLeases::end() {
  const bool had = active();
  held_.fill(std::nullopt);
  draining_.reset();
  set_working();
  return had ? Change::ended : Change::none;
}

}  // namespace outbox::relay
