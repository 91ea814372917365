#include "relay/core/claim_floors.hpp"

#include <algorithm>

namespace outbox::relay {
namespace {

constexpr std::size_t swept_by_one_claim = 4;

// Up to where the claim took everything there was, of each shard.
class Reached {
 public:
  Reached(const Batch& batch, RowId highest) : batch_(batch), highest_(highest) {
    for (const Message& m : batch.rows) {
      RowId& last = last_[static_cast<std::size_t>(m.shard.value)];
      last = std::max(last, m.id);
      highest_ = std::max(highest_, m.id);
    }
  }
  [[nodiscard]] RowId highest() const { return highest_; }
  // `floor`: under which the claim looked, in case it brought nothing of a shard that it left early.
  [[nodiscard]] RowId of(Shard shard, RowId floor) const {
    if (!cut(shard)) return highest_;
    return std::max(floor, last_[static_cast<std::size_t>(shard.value)]);
  }

 private:
  [[nodiscard]] bool cut(Shard shard) const {
    if (!batch_.more) return false;
    return batch_.cut.empty() || std::ranges::find(batch_.cut, shard) != batch_.cut.end();
  }
  const Batch& batch_;
  RowId highest_;
  std::array<RowId, shard_count> last_{};
};

}  // namespace

std::vector<RowId> ClaimFloors::of(std::span<const Shard> shards,
                                   std::span<const std::optional<Lease>> leases, MonoTime now) {
  std::vector<RowId> floors(shard_count);
  const auto lanes = static_cast<std::int16_t>(leases.size());
  std::size_t swept = 0;
  for (const Shard shard : shards) {
    Ground& ground = grounds_[at(shard)];
    const auto& lease = leases[static_cast<std::size_t>(lane_of(shard, lanes).value)];
    const Epoch epoch = lease ? lease->epoch : Epoch{};
    if (ground.epoch != epoch) ground = Ground{.floor = {}, .reach = {}, .epoch = epoch, .swept_at = now};
    ground.lowest_again = RowId{INT64_MAX};
    const bool sweep = now >= ground.swept_at + sweep_every && swept < swept_by_one_claim;
    if (sweep) ++swept;
    if (!sweep) floors[at(shard)] = ground.floor;
  }
  return floors;
}

bool ClaimFloors::sweep_due(MonoTime now) const {
  return std::ranges::any_of(
      grounds_, [&](const Ground& g) { return g.floor > RowId{} && now >= g.swept_at + sweep_every; });
}

void ClaimFloors::claimed(std::span<const Shard> shards, std::span<const RowId> floors, const Batch& batch,
                          MonoTime now) {
  // What was learned before a release says nothing about the rows it let go.
  if (batch.horizon.releases > releases_) {
    for (Ground& ground : grounds_) {
      ground.floor = {};
      ground.reach.reset();
    }
    releases_ = batch.horizon.releases;
  }
  const Reached reached(batch, highest_);
  highest_ = reached.highest();
  for (const Shard shard : shards) {
    Ground& ground = grounds_[at(shard)];
    const RowId floor = floors.empty() ? RowId{} : floors[at(shard)];
    if (floor == RowId{}) ground.swept_at = now;
    const RowId below_again{ground.lowest_again.value - 1};
    learn(ground, std::min(reached.of(shard, floor), below_again), batch.horizon, now);
  }
}

void ClaimFloors::learn(Ground& ground, RowId reached, const ClaimHorizon& horizon, MonoTime now) {
  if (ground.reach && ground.reach->ended) {
    ground.floor = std::max(ground.floor, std::min(ground.reach->id, reached));
    ground.reach.reset();
  }
  if (!ground.reach) {
    ground.reach = Reach{reached, now, {}, false};
    return;
  }
  Reach& reach = *ground.reach;
  if (!reach.next_transaction && now >= reach.at + number_delay)
    reach.next_transaction = horizon.next_transaction;
  else if (reach.next_transaction && horizon.oldest_running >= *reach.next_transaction)
    reach.ended = true;
}

void ClaimFloors::again(Shard shard, RowId id) {
  Ground& ground = grounds_[at(shard)];
  const RowId below{id.value - 1};
  ground.floor = std::min(ground.floor, below);
  if (ground.reach) ground.reach->id = std::min(ground.reach->id, below);
  ground.lowest_again = std::min(ground.lowest_again, id);
}

void ClaimFloors::reset() {
  grounds_ = {};
  highest_ = RowId{};
  releases_ = -1;
}

}  // namespace outbox::relay
