#include "tests/support/fakes/fake_database.hpp"

#include <algorithm>
#include <deque>

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
  return row.id;
}

bool FakeDatabase::is_held(const StoredRow& row) const {
  return holds_.contains({HoldScope::topic, row.topic, {}}) ||
         (row.key && holds_.contains({HoldScope::key, row.topic, *row.key}));
}

bool FakeDatabase::shard_wanted(const ClaimRequest& request, const StoredRow& row) const {
  return row.committed && row.status == RowStatus::pending &&
         std::find(request.shards.begin(), request.shards.end(), row.shard) != request.shards.end() &&
         std::find(request.except.begin(), request.except.end(), row.id) == request.except.end();
}

Batch FakeDatabase::claim(const ClaimRequest& request, WallTime now) const {
  Batch batch;
  const auto memory = std::make_shared<BatchMemory>();
  std::map<Shard, std::vector<const StoredRow*>> by_shard;
  std::vector<const StoredRow*> due;
  for (const auto& [id, row] : rows_) {
    if (!shard_wanted(request, row)) continue;
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
  for (const StoredRow* row : due) {  // half of the budget at most, or one row
    const bool fits = batch.due.empty() || bytes + body_bytes(*row) <= request.bytes_max / 2;
    due_cut = std::ssize(batch.due) == request.rows_max || !fits;
    if (due_cut) break;
    bytes += body_bytes(*row);
    batch.due.push_back(message_of(*row, is_held(*row) ? Held::yes : Held::no, *memory));
  }
  for (const auto& [shard, rows] : by_shard) {
    std::int64_t taken = 0;
    for (const StoredRow* row : rows) {
      const bool fits =
          (batch.rows.empty() && batch.due.empty()) || bytes + body_bytes(*row) <= request.bytes_max;
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
    const auto at = rows_.find(s.id.value);
    const bool there = at != rows_.end() && at->second.generation == s.generation;
    const bool ours_already = there && at->second.status == RowStatus::sent &&
                              at->second.partition == s.partition && at->second.offset == s.offset;
    if (ours_already) continue;
    if (!still_leased(s.lease)) {
      reply.exceptions.push_back({s.id, MarkOutcome::lane_lost});
      continue;
    }
    if (!there) {
      if (after == AfterSent::mark) reply.exceptions.push_back({s.id, MarkOutcome::gone});
      continue;
    }
    StoredRow& row = at->second;
    if (row.status == RowStatus::cancelled)
      reply.exceptions.push_back({s.id, MarkOutcome::cancelled});
    else if (row.status != RowStatus::pending && row.status != RowStatus::held) {
      reply.exceptions.push_back({s.id, MarkOutcome::gone});
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
  const auto at = rows_.find(dead.id.value);
  if (at == rows_.end() || at->second.status != RowStatus::pending || !still_leased(dead.lease)) return;
  at->second.status = RowStatus::dead;
  at->second.last_error = dead.reason;
  if (dead.hold) holds_.emplace(*dead.hold, dead.reason);
}

void FakeDatabase::set_held(const std::vector<RowId>& ids) {
  for (const RowId id : ids) {
    const auto at = rows_.find(id.value);
    if (at != rows_.end() && at->second.status == RowStatus::pending && is_held(at->second))
      at->second.status = RowStatus::held;
  }
}

void FakeDatabase::release(const HoldTarget& target) {
  holds_.erase(target);
  for (auto& [id, row] : rows_)
    if (row.status == RowStatus::held && row.topic == target.topic &&
        (target.scope == HoldScope::topic || row.key == target.key))
      row.status = RowStatus::pending;
}

std::vector<std::string> FakeDatabase::held_topics() const {
  std::vector<std::string> out;
  for (const auto& [target, reason] : holds_)
    if (target.scope == HoldScope::topic && reason.starts_with("kafka: ")) out.push_back(target.topic);
  return out;
}

LeaseReply FakeDatabase::lease(const LeaseRequest& request, MonoTime now) {
  lanes_.resize(static_cast<std::size_t>(request.lanes));
  LeaseReply reply;
  for (const LaneRecord& lane : lanes_)
    if (!lane.owner.empty() && lane.owner != request.owner && lane.until > now) {
      reply.other_owner = lane.owner;
      reply.other_remaining = std::chrono::duration_cast<Millis>(lane.until - now);
      return reply;
    }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    LaneRecord& lane = lanes_[i];
    if (lane.owner != request.owner) lane.epoch += 1;
    lane.owner = request.owner;
    lane.until = now + request.ttl;
    reply.held.push_back({LaneId{static_cast<std::int16_t>(i)}, Epoch{lane.epoch}});
  }
  return reply;
}

void FakeDatabase::give_back(const std::string& owner) {
  for (LaneRecord& lane : lanes_)
    if (lane.owner == owner) lane.owner.clear();
}

}  // namespace outbox::test
