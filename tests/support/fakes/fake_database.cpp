#include "tests/support/fakes/fake_database.hpp"

#include <algorithm>
#include <deque>
#include <tuple>

namespace outbox::test {
namespace {

using namespace relay;

// The texts that a batch's views point into, as a PGresult would hold them.
struct BatchMemory {
  std::deque<std::string> texts;
  std::deque<std::vector<Header>> headers;
  std::string_view keep(const std::string& text) { return texts.emplace_back(text); }
};

Message message_of(const StoredRow& row, Held held, BatchMemory& memory) {
  Message m;
  m.id = row.id;
  m.shard = row.shard;
  m.address = {1, static_cast<std::uint32_t>(row.id.value), 1};
  m.msg_id = row.msg_id;
  m.topic = memory.keep(row.topic);
  if (row.key) m.key = memory.keep(*row.key);
  if (row.body) m.body = memory.keep(*row.body);
  auto& headers = memory.headers.emplace_back();
  for (const auto& [name, value] : row.headers) headers.push_back({memory.keep(name), memory.keep(value)});
  m.headers = headers;
  m.partition = row.asked;
  m.created_at = row.created_at;
  m.available_at = row.available_at;
  m.generation = row.generation;
  m.held = held;
  return m;
}

std::int64_t body_bytes(const StoredRow& row) {
  return row.body ? static_cast<std::int64_t>(row.body->size()) : 0;
}

}  // namespace

RowId FakeDatabase::insert(StoredRow row) {
  row.id = RowId{next_id_++};
  rows_.emplace(row.id.value, row);
  running_.insert(row.id.value);
  return row.id;
}

StoredRow& FakeDatabase::insert_again(RowId id) {
  StoredRow& row = rows_.emplace(id.value, StoredRow{})->second;
  row.id = id;
  row.committed = true;
  return row;
}

FakeDatabase::Rows::iterator FakeDatabase::find(const RowName& name) {
  const auto [begin, end] = rows_.equal_range(name.id.value);
  const auto at =
      std::find_if(begin, end, [&](const auto& entry) { return entry.second.msg_id == name.msg_id; });
  return at == end ? rows_.end() : at;
}

bool FakeDatabase::is_held(const StoredRow& row) const {
  return holds_.contains({HoldScope::topic, row.topic, {}}) ||
         (row.key && holds_.contains({HoldScope::key, row.topic, *row.key}));
}

bool FakeDatabase::shard_wanted(const ClaimRequest& request, const StoredRow& row) const {
  return row.committed && row.status == RowStatus::pending &&
         std::find(request.shards.begin(), request.shards.end(), row.shard) != request.shards.end() &&
         std::find(request.except.begin(), request.except.end(), RowName{row.id, row.msg_id}) ==
             request.except.end();
}

Batch FakeDatabase::claim(const ClaimRequest& request, WallTime now) const {
  Batch batch;
  const auto memory = std::make_shared<BatchMemory>();
  std::map<Shard, std::vector<const StoredRow*>> by_shard;
  std::vector<const StoredRow*> due;
  const bool bounded = !request.floors.empty() && request.releases == releases_;
  for (const auto& [id, row] : rows_) {
    if (!shard_wanted(request, row)) continue;
    if (bounded && !row.available_at && row.id <= request.floors[static_cast<std::size_t>(row.shard.value)])
      continue;
    if (!row.available_at)
      by_shard[row.shard].push_back(&row);
    else if (*row.available_at <= now)
      due.push_back(&row);
    else
      batch.next_due = std::min(batch.next_due.value_or(*row.available_at), *row.available_at);
  }
  const std::int64_t per_shard =
      request.look == Look::flat ? request.rows_max
                                 : std::max<std::int64_t>(1, request.rows_max / std::ssize(request.shards));
  std::int64_t bytes = 0;
  bool due_cut = false;
  std::stable_sort(due.begin(), due.end(),
                   [](const auto* a, const auto* b) { return *a->available_at < *b->available_at; });
  std::int64_t taken_due = 0;
  for (const StoredRow* row : due) {  // half of the budget at most, or one row
    const bool fits = taken_due == 0 || bytes + body_bytes(*row) <= request.bytes_max / 2;
    due_cut = taken_due == request.rows_max || (!row->locked && !fits);
    if (due_cut) break;
    batch.due.push_back(message_of(*row, is_held(*row) ? Held::yes : Held::no, *memory));
    batch.due.back().locked = row->locked ? Locked::yes : Locked::no;
    if (row->locked) continue;
    bytes += body_bytes(*row);
    taken_due += 1;
  }
  if (due_cut) batch.due_cut = DuePlace{*batch.due.back().available_at, batch.due.back().id};
  for (const auto& [shard, rows] : by_shard) {
    std::int64_t taken = 0;
    for (const StoredRow* row : rows) {
      const bool fits =
          (batch.rows.empty() && taken_due == 0) || bytes + body_bytes(*row) <= request.bytes_max;
      if (taken == per_shard || std::ssize(batch.rows) == request.rows_max || !fits) {
        batch.more = true;
        batch.cut.push_back(shard);
        break;
      }
      bytes += body_bytes(*row);
      taken += 1;
      batch.rows.push_back(message_of(*row, is_held(*row) ? Held::yes : Held::no, *memory));
    }
  }
  if (due_cut && batch.cut.empty()) batch.cut = {no_shard};
  batch.more = !batch.cut.empty();
  batch.horizon = {running_.empty() ? next_id_ : *running_.begin(), next_id_, releases_};
  batch.memory.push_back(memory);
  return batch;
}

bool FakeDatabase::still_leased(const Lease& lease) const {
  return static_cast<std::size_t>(lease.lane.value) < lanes_.size() &&
         lanes_[static_cast<std::size_t>(lease.lane.value)].epoch == lease.epoch.value;
}

MarkReply FakeDatabase::mark(const std::vector<SentRow>& sent, AfterSent after) {
  MarkReply reply;
  for (const SentRow& s : sent) {
    const auto at = find({s.id, s.msg_id});
    const bool there = at != rows_.end() && (at->second.generation == s.generation || !checks_generations);
    const bool ours_already = there && at->second.status == RowStatus::sent &&
                              at->second.partition == s.partition && at->second.offset == s.offset;
    if (ours_already) continue;
    const bool foreign = there && s.of && lane_of(at->second.shard, s.of->lanes) != s.of->lane;
    if (foreign || (at == rows_.end() && rows_.contains(s.id.value))) {
      reply.exceptions.push_back({s.id, s.msg_id, MarkOutcome::replaced});
      continue;
    }
    if (checks_epochs && !still_leased(s.lease)) {
      reply.exceptions.push_back({s.id, s.msg_id, MarkOutcome::lane_lost});
      continue;
    }
    if (!there) {
      if (after == AfterSent::mark) reply.exceptions.push_back({s.id, s.msg_id, MarkOutcome::gone});
      continue;
    }
    StoredRow& row = at->second;
    if (row.status == RowStatus::cancelled)
      reply.exceptions.push_back({s.id, s.msg_id, MarkOutcome::cancelled});
    else if (row.status != RowStatus::pending && row.status != RowStatus::held) {
      reply.exceptions.push_back({s.id, s.msg_id, MarkOutcome::gone});
      continue;
    }
    if (on_marked) on_marked(s);
    row.status = RowStatus::sent;
    row.partition = s.partition;
    row.offset = s.offset;
    if (after == AfterSent::erase) rows_.erase(at);
  }
  return reply;
}

void FakeDatabase::bury(const DeadRow& dead) {
  const auto at = find({dead.id, dead.msg_id});
  if (at == rows_.end() || at->second.status != RowStatus::pending || !still_leased(dead.lease)) return;
  if (at->second.generation != dead.generation) return;
  at->second.status = RowStatus::dead;
  at->second.last_error = dead.reason;
  if (dead.hold) holds_[*dead.hold].relays = dead.reason;
}

void FakeDatabase::set_held(const std::vector<RowName>& names) {
  for (const RowName& name : names) {
    const auto at = find(name);
    if (at != rows_.end() && at->second.status == RowStatus::pending && is_held(at->second))
      at->second.status = RowStatus::held;
  }
}

Release FakeDatabase::release(const HoldTarget& target) {
  if (const auto hold = holds_.find(target); hold != holds_.end()) hold->second.relays.reset();
  return let_go(target) ? Release::done : Release::kept;
}

void FakeDatabase::resume(const HoldTarget& target) {
  if (const auto hold = holds_.find(target); hold != holds_.end()) hold->second.paused = false;
  let_go(target);
}

bool FakeDatabase::let_go(const HoldTarget& target) {
  releases_ += 1;
  const auto hold = holds_.find(target);
  if (hold != holds_.end() && (hold->second.relays || hold->second.paused)) return false;
  holds_.erase(target);
  for (auto& [id, row] : rows_)
    if (row.status == RowStatus::held && row.topic == target.topic &&
        (target.scope == HoldScope::topic || row.key == target.key))
      row.status = RowStatus::pending;
  return true;
}

bool FakeDatabase::retry(RowId id) {
  const auto at = rows_.find(id.value);
  if (at == rows_.end() || at->second.status != RowStatus::dead) return false;
  StoredRow& row = at->second;
  releases_ += 1;
  row.status = RowStatus::pending;
  row.generation += 1;
  const bool last = std::none_of(rows_.begin(), rows_.end(), [&](const auto& entry) {
    const StoredRow& other = entry.second;
    return other.status == RowStatus::dead && other.topic == row.topic && other.key == row.key;
  });
  if (row.key && last) std::ignore = release({HoldScope::key, row.topic, *row.key});
  return true;
}

std::vector<std::string> FakeDatabase::held_topics() const {
  std::vector<std::string> out;
  for (const auto& [target, reasons] : holds_)
    if (target.scope == HoldScope::topic && reasons.relays) out.push_back(target.topic);
  return out;
}

void FakeDatabase::clock_set_back(MonoTime now) {
  for (LaneRecord& lane : lanes_) lane.until = std::min(lane.until, now + lane.ttl);
  for (auto& [name, instance] : instances_) instance.until = std::min(instance.until, now + instance.ttl);
}

void FakeDatabase::announce(const LeaseRequest& request, MonoTime now) {
  std::erase_if(instances_, [now](const auto& entry) { return entry.second.until <= now; });
  const auto [at, joined] = instances_.try_emplace(request.owner);
  if (joined) at->second.since = next_since_++;
  at->second.lanes = request.lanes;
  at->second.until = now + request.ttl;
  at->second.ttl = request.ttl;
  at->second.delivery = request.delivery;
  if (joined) on_lanes();
}

std::string FakeDatabase::in_force(MonoTime now) const {
  const auto rank = [&](const auto& entry) {
    const bool works = std::any_of(lanes_.begin(), lanes_.end(), [&](const LaneRecord& lane) {
      return lane.owner == entry.first && lane.until > now;
    });
    return std::pair{!works, entry.second.since};
  };
  return std::min_element(instances_.begin(), instances_.end(),
                          [&](const auto& a, const auto& b) { return rank(a) < rank(b); })
      ->first;
}

std::int16_t FakeDatabase::lanes_wanted(const std::string& delivery) const {
  const Instance* youngest = nullptr;
  for (const auto& [name, instance] : instances_)
    if (instance.delivery == delivery && (youngest == nullptr || instance.since > youngest->since))
      youngest = &instance;
  return youngest->lanes;
}

bool FakeDatabase::switch_lanes(std::int16_t wanted, MonoTime now) {
  if (std::ssize(lanes_) == wanted) return false;
  std::int64_t top = 0;
  for (const LaneRecord& lane : lanes_) {
    if (!lane.owner.empty() && lane.until > now) return false;
    top = std::max(top, lane.epoch + 1);
  }
  lanes_.assign(static_cast<std::size_t>(wanted),
                LaneRecord{.owner = {}, .epoch = top, .until = {}, .ttl = {}});
  generation_ += 1;
  return true;
}

std::int16_t FakeDatabase::share_of(const std::string& owner) const {
  const Instance& mine = instances_.at(owner);
  std::int64_t alive = 0;
  std::int64_t older = 0;
  for (const auto& [name, instance] : instances_) {
    if (instance.delivery != mine.delivery) continue;
    alive += 1;
    older += instance.since < mine.since ? 1 : 0;
  }
  const bool one_more = older < std::ssize(lanes_) % alive;
  return static_cast<std::int16_t>(std::ssize(lanes_) / alive + (one_more ? 1 : 0));
}

LeaseReply FakeDatabase::lease(const LeaseRequest& request, MonoTime now) {
  clock_set_back(now);
  announce(request, now);
  const std::string other = in_force(now);
  const std::string delivery = instances_.at(other).delivery;
  const bool agrees = request.delivery == delivery;
  const std::int16_t wanted = lanes_wanted(delivery);
  if (switch_lanes(wanted, now)) on_lanes();
  LeaseReply reply;
  reply.lanes = static_cast<std::int16_t>(lanes_.size());
  if (!agrees) reply.differs = Differing{delivery, other};
  reply.share = agrees && reply.lanes == wanted ? share_of(request.owner) : std::int16_t{0};
  reply.instances = static_cast<std::int32_t>(instances_.size());
  reply.paused = paused;
  auto held = std::count_if(lanes_.begin(), lanes_.end(),
                            [&](const LaneRecord& lane) { return lane.owner == request.owner; });
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    LaneRecord& lane = lanes_[i];
    const bool mine = lane.owner == request.owner;
    if (!mine && held < reply.share && (lane.owner.empty() || lane.until <= now)) {
      held += 1;
      lane.owner = request.owner;
      lane.epoch += 1;
    }
    if (lane.owner == request.owner) {
      lane.until = now + request.ttl;
      lane.ttl = request.ttl;
      reply.held.push_back({LaneId{static_cast<std::int16_t>(i)}, Epoch{lane.epoch}});
    } else if (!lane.owner.empty()) {
      reply.other_owner = lane.owner;
      const Millis ends = std::max(Millis{0}, std::chrono::duration_cast<Millis>(lane.until - now));
      reply.other_ends = std::min(reply.other_ends.value_or(ends), ends);
    }
  }
  return reply;
}

LedgerStanding FakeDatabase::join_ledger() {
  ledgers_[generation_] = static_cast<std::int16_t>(lanes_.size());
  LedgerStanding standing;
  standing.ledger.bytes[0] = 1;
  for (const auto& [number, lanes] : ledgers_) {
    if (number == generation_)
      standing.present = {number, lanes};
    else
      standing.older.push_back({number, lanes});
  }
  return standing;
}

void FakeDatabase::settle_ledger(const std::vector<LaneGeneration>& settled, const Lease& lease) {
  if (!still_leased(lease)) return;
  for (const LaneGeneration& generation : settled)
    if (generation.number < generation_) ledgers_.erase(generation.number);
}

void FakeDatabase::give_back(const std::string& owner, const std::vector<Lease>& lanes, Leaving leaving) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    LaneRecord& lane = lanes_[i];
    const bool given =
        leaving == Leaving::yes || std::any_of(lanes.begin(), lanes.end(), [&](const Lease& l) {
          return static_cast<std::size_t>(l.lane.value) == i && l.epoch.value == lane.epoch;
        });
    if (lane.owner == owner && given) lane.owner.clear();
  }
  if (leaving == Leaving::yes) instances_.erase(owner);
  on_lanes();
}

}  // namespace outbox::test
