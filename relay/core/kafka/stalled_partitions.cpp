#include "relay/core/kafka/stalled_partitions.hpp"

#include <algorithm>
#include <utility>

namespace outbox::relay {

StalledPartitions::State& StalledPartitions::of(Partition partition) {
  const auto at = static_cast<std::size_t>(partition.value);
  if (at >= of_.size()) of_.resize(at + 1);
  return of_[at];
}

const StalledPartitions::State* StalledPartitions::find(Partition partition) const {
  const auto at = static_cast<std::size_t>(partition.value);
  return at < of_.size() ? &of_[at] : nullptr;
}

void StalledPartitions::published(Partition partition, MonoTime now) {
  State& state = of(partition);
  if (state.owed++ > 0) return;
  owing_ += 1;
  state.quiet_since = now;
  quiet_since_ = std::min(quiet_since_, now);
}

bool StalledPartitions::reported(Partition partition, MonoTime now) {
  State& state = of(partition);
  if (--state.owed == 0) owing_ -= 1;
  state.quiet_since = now;
  if (!std::exchange(state.away, false)) return false;
  away_ -= 1;
  quiet_since_ = std::min(quiet_since_, now);
  return true;
}

std::vector<Partition> StalledPartitions::overdue(MonoTime now, Millis patience) {
  std::vector<Partition> out;
  if (now < wake_at(patience)) return out;
  quiet_since_ = MonoTime::max();
  for (std::size_t n = 0; n < of_.size(); ++n) {
    State& state = of_[n];
    if (state.away || state.owed == 0) continue;
    if (now < state.quiet_since + patience) {
      quiet_since_ = std::min(quiet_since_, state.quiet_since);
      continue;
    }
    state.away = true;
    away_ += 1;
    out.push_back(Partition{static_cast<std::int32_t>(n)});
  }
  return out;
}

MonoTime StalledPartitions::wake_at(Millis patience) const {
  return quiet_since_ == MonoTime::max() ? quiet_since_ : quiet_since_ + patience;
}

bool StalledPartitions::away(Partition partition) const {
  const State* state = find(partition);
  return state != nullptr && state->away;
}

bool StalledPartitions::owes(Partition partition) const {
  const State* state = find(partition);
  return state != nullptr && state->owed > 0;
}

std::vector<Deferred> StalledPartitions::take(Partition partition) {
  return std::exchange(of(partition).deferred, {});
}

std::vector<Deferred> StalledPartitions::take(const LaneSet& lanes) {
  std::vector<Deferred> taken;
  for (State& state : of_)
    std::erase_if(state.deferred, [&](const Deferred& row) {
      const bool chosen = lanes.test(static_cast<std::size_t>(row.lane.value));
      if (chosen) taken.push_back(row);
      return chosen;
    });
  return taken;
}

void StalledPartitions::close(Partition partition, ClaimSerial newest_open) {
  of(partition).closed = latest_closed_ = newest_open;
}

void StalledPartitions::close(ClaimSerial newest_open) {
  closed_ = latest_closed_ = newest_open;
}

bool StalledPartitions::closed(Partition partition, ClaimSerial claim) const {
  const State* state = find(partition);
  return state != nullptr && claim <= state->closed;
}

}  // namespace outbox::relay
