#include "relay/core/stragglers.hpp"

#include <algorithm>
#include <utility>

namespace outbox::relay {

void Stragglers::published(Partition partition, MonoTime now) {
  State& state = of_[partition.value];
  if (state.owed++ == 0) state.quiet_since = now;
}

bool Stragglers::reported(Partition partition, MonoTime now) {
  State& state = of_[partition.value];
  state.owed -= 1;
  state.quiet_since = now;
  return std::exchange(state.away, false);
}

std::vector<Partition> Stragglers::overdue(MonoTime now, Millis patience) {
  std::vector<Partition> out;
  for (auto& [number, state] : of_) {
    if (state.away || state.owed == 0 || now < state.quiet_since + patience) continue;
    state.away = true;
    out.push_back(Partition{number});
  }
  return out;
}

MonoTime Stragglers::wake_at(Millis patience) const {
  MonoTime at = MonoTime::max();
  for (const auto& [number, state] : of_)
    if (!state.away && state.owed > 0) at = std::min(at, state.quiet_since + patience);
  return at;
}

bool Stragglers::away(Partition partition) const {
  const auto at = of_.find(partition.value);
  return at != of_.end() && at->second.away;
}

std::int64_t Stragglers::away_count() const {
  return std::count_if(of_.begin(), of_.end(), [](const auto& entry) { return entry.second.away; });
}

std::vector<Aside> Stragglers::take(Partition partition) {
  return std::exchange(of_[partition.value].aside, {});
}

std::vector<Aside> Stragglers::take(const LaneSet& lanes) {
  std::vector<Aside> taken;
  for (auto& [number, state] : of_)
    std::erase_if(state.aside, [&](const Aside& row) {
      const bool chosen = lanes.test(static_cast<std::size_t>(row.lane.value));
      if (chosen) taken.push_back(row);
      return chosen;
    });
  return taken;
}

}  // namespace outbox::relay
