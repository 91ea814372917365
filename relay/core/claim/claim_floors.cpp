#include "relay/core/claim/claim_floors.hpp"

#include <algorithm>

namespace outbox::relay {
namespace {

constexpr int lane_claim_weight = 20;  // it brings ten times the rows of a flat look, and under load
constexpr int leave_below = 4;  // slow looks that all shards together may cost when floors are given up

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

std::vector<RowId> ClaimFloors::floors_for(std::span<const Shard> shards,
                                           std::span<const std::optional<Lease>> leases, MonoTime now) {
  std::vector<RowId> floors(in_use() ? shard_count : 0);
  const auto lanes = static_cast<std::int16_t>(leases.size());
  std::vector<Shard> unswept;
  for (const Shard shard : shards) {
    ShardFloor& shard_floor = shards_[at(shard)];
    const auto& lease = leases[static_cast<std::size_t>(lane_of(shard, lanes).value)];
    const Epoch epoch = lease ? lease->epoch : Epoch{};
    if (shard_floor.epoch != epoch)
      shard_floor = ShardFloor{.floor = {}, .candidate = {}, .epoch = epoch, .swept_at = now};
    shard_floor.lowest_unsent = RowId{INT64_MAX};
    if (!in_use() || shard_floor.floor == RowId{}) continue;
    floors[at(shard)] = shard_floor.floor;
    if (now >= shard_floor.swept_at + sweep_every) unswept.push_back(shard);
  }
  const std::size_t sweeps = unswept.empty() ? 0 : std::min(sweeps_due(now), unswept.size());
  if (sweeps == 0) return floors;
  // Those that wait longest: where time does not allow for all of them, each still has its turn.
  std::ranges::stable_sort(unswept, {}, [&](Shard shard) { return shards_[at(shard)].swept_at; });
  for (const Shard shard : std::span(unswept).first(sweeps)) floors[at(shard)] = RowId{};
  sweep_at_ = now;
  return floors;
}

// As many as the time since the last one pays for, and a claim bears.
std::size_t ClaimFloors::sweeps_due(MonoTime now) const {
  const Micros pace = std::max<Micros>(sweep_every / shard_count, sweep_pause * sweep_cost_);
  const auto paid = std::chrono::duration_cast<Micros>(now - sweep_at_) / pace;
  const auto borne = std::max<std::int64_t>(1, Micros{sweep_burst} / std::max(sweep_cost_, Micros{1}));
  return static_cast<std::size_t>(std::min<std::int64_t>(paid, borne));
}

void ClaimFloors::claimed(const Sent& sent, const Batch& batch, MonoTime now) {
  // What was learned before a release says nothing about the rows it let go.
  if (batch.horizon.releases > releases_) {
    for (ShardFloor& shard_floor : shards_) {
      shard_floor.floor = {};
      shard_floor.candidate.reset();
    }
    releases_ = batch.horizon.releases;
  }
  time(sent, now);
  const Reached reached(batch, highest_);
  highest_ = reached.highest();
  for (const Shard shard : sent.shards) {
    ShardFloor& shard_floor = shards_[at(shard)];
    const RowId floor = sent.floors.empty() ? RowId{} : sent.floors[at(shard)];
    if (floor == RowId{}) shard_floor.swept_at = now;
    const RowId below_again{shard_floor.lowest_unsent.value - 1};
    learn(shard_floor, std::min(reached.of(shard, floor), below_again), batch.horizon, {sent.at, now});
  }
}

void ClaimFloors::time(const Sent& sent, MonoTime now) {
  const auto took = std::chrono::duration_cast<Micros>(now - sent.at);
  std::int64_t swept = 0;
  bool without = true;
  if (!sent.floors.empty())
    for (const Shard shard : sent.shards) {
      const bool floor = sent.floors[at(shard)] > RowId{};
      if (floor) without = false;
      if (!floor && shards_[at(shard)].floor > RowId{}) ++swept;
    }
  Micros& usual = usual_[sent.look == Look::flat ? 0 : 1];
  if (swept > 0)
    time_sweeps(swept, std::max(took - usual, Micros{}), now);
  else if (!without)
    usual = usual == Micros{} ? took : (usual * 7 + took) / 8;
  else if (!in_use() && took >= slow_look_ * (sent.look == Look::flat ? 1 : lane_claim_weight))
    enable(took / std::ssize(sent.shards), now);
}

void ClaimFloors::enable(Micros sweep_cost, MonoTime now) {
  used_since_ = now;
  sweep_cost_ = sweep_cost;
  sweep_at_ = now;
  swept_cost_ = {};
  swept_ = 0;
}

// Floors are given up once reading all that lies below them would be quick.
void ClaimFloors::time_sweeps(std::int64_t swept, Micros cost, MonoTime now) {
  sweep_at_ = now;
  sweep_cost_ = cost / swept;
  swept_cost_ += cost;
  swept_ += swept;
  if (!used_since_ || now < *used_since_ + used_for) return;
  if (swept_cost_ / swept_ * shard_count < slow_look_ * leave_below)
    used_since_.reset();
  else
    enable(sweep_cost_, now);
}

void ClaimFloors::learn(ShardFloor& shard_floor, RowId reached, const ClaimHorizon& horizon,
                        const Span& claim) {
  if (shard_floor.candidate && shard_floor.candidate->ended) {
    shard_floor.floor = std::max(shard_floor.floor, std::min(shard_floor.candidate->id, reached));
    shard_floor.candidate.reset();
  }
  if (!shard_floor.candidate) {
    shard_floor.candidate = CandidateFloor{reached, claim.back, {}, false};
    return;
  }
  CandidateFloor& candidate = *shard_floor.candidate;
  if (!candidate.next_transaction &&
      claim.sent >= candidate.at + (horizon.transaction_first ? Millis{} : number_delay))
    candidate.next_transaction = horizon.next_transaction;
  else if (candidate.next_transaction && horizon.oldest_running >= *candidate.next_transaction)
    candidate.ended = true;
}

void ClaimFloors::lower_to(Shard shard, RowId id) {
  ShardFloor& shard_floor = shards_[at(shard)];
  const RowId below{id.value - 1};
  shard_floor.floor = std::min(shard_floor.floor, below);
  if (shard_floor.candidate) shard_floor.candidate->id = std::min(shard_floor.candidate->id, below);
  shard_floor.lowest_unsent = std::min(shard_floor.lowest_unsent, id);
}

void ClaimFloors::reset() {
  shards_ = {};
  highest_ = RowId{};
  releases_ = -1;
}

}  // namespace outbox::relay
