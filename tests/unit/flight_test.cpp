#include "relay/core/claim/flight.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <vector>

using namespace outbox;
using namespace outbox::relay;

namespace {

const std::vector<std::optional<Lease>> leases{Lease{LaneId{0}, Epoch{1}}, Lease{LaneId{1}, Epoch{1}}};

// A row a shard: shard 0 is of lane 0, shard 1 of lane 1.
std::span<Row> admit(Flight& flight, std::initializer_list<std::int16_t> shards, std::int64_t first_id) {
  std::vector<Message> messages;
  for (const std::int16_t shard : shards) {
    Message m;
    m.id = RowId{first_id++};
    m.shard = Shard{shard};
    messages.push_back(m);
  }
  return flight.admit(messages, {}, leases, ClaimSerial{1}, MonoTime{});
}

std::vector<std::int64_t> left_out(const Flight& flight, LaneSet of) {
  std::vector<std::int64_t> out;
  for (const RowName& row : flight.left_out_rows(of)) out.push_back(row.id.value);
  std::ranges::sort(out);
  return out;
}

}  // namespace

TEST_CASE("claims leave out what is in flight and what was excluded, of their lanes") {
  Flight flight;
  admit(flight, {0, 1, 0}, 10);
  CHECK(flight.exclude(RowName{RowId{5}, {}}, LaneId{0}));
  CHECK_FALSE(flight.exclude(RowName{RowId{5}, {}}, LaneId{0}));
  CHECK(flight.exclude(RowName{RowId{6}, {}}, LaneId{1}));
  CHECK(left_out(flight, LaneSet{1}) == std::vector<std::int64_t>{5, 10, 12});
  CHECK(left_out(flight, LaneSet{2}) == std::vector<std::int64_t>{6, 11});
  CHECK(left_out(flight, LaneSet{3}) == std::vector<std::int64_t>{5, 6, 10, 11, 12});
  CHECK(flight.left_out(LaneSet{3}) == 5);
  flight.include(RowName{RowId{5}, {}}, LaneId{0});
  CHECK(left_out(flight, LaneSet{1}) == std::vector<std::int64_t>{10, 12});
}

TEST_CASE("a row whose partition is away is no part of the load, and still in flight") {
  Flight flight;
  const std::span<Row> rows = admit(flight, {0, 0}, 1);
  for (Row& row : rows) row.stage = Stage::published;
  flight.leave_away(rows[0]);
  CHECK(flight.rows() == 2);
  CHECK(flight.load_rows() == 1);
  CHECK(flight.load_rows_of(LaneId{0}) == 1);
  CHECK(flight.load_bytes() == flight.bytes() - rows[0].bytes);
  CHECK(left_out(flight, LaneSet{1}) == std::vector<std::int64_t>{1, 2});
  flight.come_back(rows[0]);
  CHECK(flight.load_rows() == 2);
  CHECK(flight.load_rows_of(LaneId{0}) == 2);
  CHECK(flight.load_bytes() == flight.bytes());
  flight.ack(rows[0], Partition{0}, Offset{0});
  flight.settle(rows[0]);
  CHECK(flight.load_rows() == 1);
  CHECK(flight.load_bytes() == flight.bytes());
}
