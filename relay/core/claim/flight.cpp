#include "relay/core/claim/flight.hpp"

#include <utility>

#include "base/check.hpp"

namespace outbox::relay {
namespace {

// What a row costs beside its body: the row itself, its key and headers, and librdkafka's message.
constexpr std::int64_t row_overhead_bytes = 512;

std::int64_t cost(const Message& m) {
  std::int64_t bytes = row_overhead_bytes + static_cast<std::int64_t>(m.body ? m.body->size() : 0);
  if (m.key) bytes += static_cast<std::int64_t>(m.key->size());
  return bytes;
}

}  // namespace

std::span<Row> Flight::admit(const std::vector<Message>& rows,
                             std::vector<std::shared_ptr<const void>> memory,
                             std::span<const std::optional<Lease>> leases, ClaimSerial claim, MonoTime now) {
  if (rows.empty()) return {};
  FlightBatch& entry = batches_.emplace_back();
  entry.self = std::prev(batches_.end());
  entry.memory = std::move(memory);
  entry.admitted_at = now;
  entry.rows.reserve(rows.size());
  const auto lanes = static_cast<std::int16_t>(leases.size());
  for (const Message& m : rows) {
    const LaneId lane = lane_of(m.shard, lanes);
    const std::optional<Lease>& lease = leases[index(lane)];
    OUTBOX_CHECK(lease.has_value(), "a claim brings only rows of lanes that are leased");
    Row row;
    row.message = m;
    row.lease = *lease;
    row.claim = claim;
    row.order = next_order_++;
    row.batch = &entry;
    row.bytes = cost(m);
    bytes_ += row.bytes;
    lanes_[index(lane)].rows += 1;
    lanes_[index(lane)].admitted_at = now;
    entry.rows.push_back(row);
  }
  rows_ += static_cast<std::int64_t>(rows.size());
  entry.payloads = entry.unsettled = entry.rows.size();
  return entry.rows;
}

void Flight::drop_payload(Row& row) {
  bytes_ -= row.bytes;
  if (--row.batch->payloads == 0) row.batch->memory.clear();
}

void Flight::ack(Row& row, Partition partition, Offset offset) {
  OUTBOX_CHECK(row.stage == Stage::published, "only a published row is acked");
  row.stage = Stage::acked;
  row.partition = partition;
  row.offset = offset;
  drop_payload(row);
}

void Flight::leave_away(Row& row) {
  OUTBOX_CHECK(row.stage == Stage::published && !row.away, "a row is left away once, while Kafka owes it");
  row.away = true;
  away_rows_ += 1;
  away_bytes_ += row.bytes;
  lanes_[index(row.lease.lane)].away += 1;
}

void Flight::come_back(Row& row) {
  OUTBOX_CHECK(row.away, "only a row that is away comes back");
  row.away = false;
  away_rows_ -= 1;
  away_bytes_ -= row.bytes;
  lanes_[index(row.lease.lane)].away -= 1;
}

std::int64_t Flight::load_rows_of(const LaneSet& lanes) const {
  std::int64_t count = 0;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
    if (lanes.test(lane)) count += lanes_[lane].rows - lanes_[lane].away;
  return count;
}

std::int64_t Flight::left_out(const LaneSet& lanes) const {
  std::int64_t count = 0;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
    if (lanes.test(lane)) count += lanes_[lane].rows + std::ssize(excluded_[lane]);
  return count;
}

void Flight::settle(Row& row) {
  OUTBOX_CHECK(row.stage != Stage::settled, "a row is settled once");
  OUTBOX_CHECK(row.stage != Stage::published, "a row is not settled while Kafka may still take it");
  if (row.stage != Stage::acked) drop_payload(row);
  row.stage = Stage::settled;
  lanes_[index(row.lease.lane)].rows -= 1;
  rows_ -= 1;
  FlightBatch& batch = *row.batch;
  if (--batch.unsettled == 0) batches_.erase(batch.self);
}

std::vector<RowName> Flight::left_out_rows(const LaneSet& lanes) const {
  std::vector<RowName> out;
  out.reserve(static_cast<std::size_t>(left_out(lanes)));
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
    if (lanes.test(lane)) out.insert(out.end(), excluded_[lane].begin(), excluded_[lane].end());
  if (rows_of(lanes) == 0) return out;
  for (const FlightBatch& batch : batches_)
    for (const Row& row : batch.rows)
      if (row.stage != Stage::settled && lanes.test(index(row.lease.lane)))
        out.push_back(name_of(row.message));
  return out;
}

std::int64_t Flight::rows_of(const LaneSet& lanes) const {
  std::int64_t rows = 0;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
    if (lanes.test(lane)) rows += lanes_[lane].rows;
  return rows;
}

}  // namespace outbox::relay
