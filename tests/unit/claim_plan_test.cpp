#include "relay/core/claim/claim_plan.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace outbox;
using namespace outbox::relay;

namespace {

const MonoTime start{std::chrono::hours{1}};

ClaimLimits limits() {
  ClaimLimits l;
  l.lanes = 4;
  l.batch_rows = 100;
  l.flat_rows = 50;
  l.in_flight_rows = 600;
  l.batch_bytes = 1 << 20;
  l.in_flight_bytes = 4 << 20;
  return l;
}

ClaimPlan in_backlog(const Flight& flight) {
  ClaimPlan plan{limits()};
  plan.reset(start);
  const auto look = plan.next(start, flight);
  REQUIRE(look.has_value());
  plan.claimed(*look, {.rows = 50, .more = true}, start);
  return plan;
}

std::vector<Message> rows_of_shard(std::int16_t shard, int count) {
  std::vector<Message> rows;
  for (int i = 0; i < count; ++i) {
    Message m;
    m.id = RowId{i + 1};
    m.shard = Shard{shard};
    rows.push_back(m);
  }
  return rows;
}

const std::array<std::optional<Lease>, 4> leases{Lease{LaneId{0}, Epoch{1}}, Lease{LaneId{1}, Epoch{1}},
                                                 Lease{LaneId{2}, Epoch{1}}, Lease{LaneId{3}, Epoch{1}}};

}  // namespace

TEST_CASE("while quiet there is one flat look at a time") {
  Flight flight;
  ClaimPlan plan{limits()};
  plan.reset(start);
  const auto look = plan.next(start, flight);
  REQUIRE(look.has_value());
  CHECK(look->look == Look::flat);
  CHECK_FALSE(plan.next(start + Millis{500}, flight).has_value());
}

TEST_CASE("a look that was cut short turns to the lanes, each with a claim of its own") {
  Flight flight;
  ClaimPlan plan = in_backlog(flight);
  for (std::int16_t lane = 0; lane < 4; ++lane) {
    const auto claim = plan.next(start, flight);
    REQUIRE(claim.has_value());
    CHECK(claim->look == Look::by_shard);
    CHECK(claim->lane == LaneId{lane});
  }
  CHECK_FALSE(plan.next(start, flight).has_value());
}

TEST_CASE("a flat look never starts while a lane's claim is under way") {
  Flight flight;
  ClaimPlan plan = in_backlog(flight);
  std::vector<Claim> claims;
  while (const auto claim = plan.next(start, flight)) claims.push_back(*claim);
  REQUIRE(claims.size() == 4);
  plan.reset(start);  // quiet again, with four claims under way
  CHECK_FALSE(plan.next(start + Millis{100}, flight).has_value());
  for (const Claim& claim : claims) plan.claimed(claim, {}, start + Millis{100});
  CHECK(plan.next(start + Millis{100}, flight).has_value());
}

TEST_CASE("when every lane is dry the plan is quiet again") {
  Flight flight;
  ClaimPlan plan = in_backlog(flight);
  std::vector<Claim> claims;
  while (const auto claim = plan.next(start, flight)) claims.push_back(*claim);
  for (const Claim& claim : claims) plan.claimed(claim, {.rows = 3, .more = false}, start);
  const auto next = plan.next(start + Millis{10}, flight);
  REQUIRE(next.has_value());
  CHECK(next->look == Look::flat);
}

TEST_CASE("a lane with rows in flight waits, and after stalled_after claims past them") {
  Flight flight;
  ClaimPlan plan = in_backlog(flight);
  static_cast<void>(flight.admit(rows_of_shard(1, 10), {}, leases, ClaimSerial{1}, start));
  std::vector<LaneId> lanes;
  while (const auto claim = plan.next(start, flight)) lanes.push_back(*claim->lane);
  CHECK(lanes == std::vector<LaneId>{LaneId{0}, LaneId{2}, LaneId{3}});
  CHECK(plan.wake_at() == start + Millis{200});
  const auto late = plan.next(start + Millis{200}, flight);
  REQUIRE(late.has_value());
  CHECK(late->lane == LaneId{1});
}

TEST_CASE("claims reserve their bytes: together they never exceed the budget") {
  Flight flight;
  ClaimLimits l = limits();
  l.in_flight_bytes = 3 << 20;
  ClaimPlan plan{l};
  plan.reset(start);
  const auto look = plan.next(start, flight);
  plan.claimed(*look, {.rows = 1, .more = true}, start);
  std::int64_t reserved = 0;
  int claims = 0;
  while (const auto claim = plan.next(start, flight)) {
    reserved += claim->bytes_max;
    claims += 1;
  }
  CHECK(claims == 3);
  CHECK(reserved <= l.in_flight_bytes);
}

TEST_CASE("without a row for a while it falls asleep, polls, and a hint wakes it at once") {
  Flight flight;
  ClaimPlan plan{limits()};
  plan.reset(start);
  MonoTime now = start;
  while (!plan.asleep()) {
    const auto look = plan.next(now, flight);
    if (look) plan.claimed(*look, {}, now);
    now += Millis{1};
    REQUIRE(now < start + Millis{500});
  }
  CHECK_FALSE(plan.next(now, flight).has_value());
  CHECK(plan.wake_at() - now <= Millis{250});
  plan.hint(now);
  CHECK_FALSE(plan.asleep());
  CHECK(plan.next(now, flight).has_value());
}

TEST_CASE("rows that were all left are not looked for again at once") {
  Flight flight;
  ClaimPlan plan{limits()};
  plan.reset(start);
  const auto look = plan.next(start, flight);
  plan.claimed(*look, {.rows = 0, .dropped = 20}, start);
  CHECK_FALSE(plan.next(start + Millis{9}, flight).has_value());
  CHECK(plan.next(start + Millis{10}, flight).has_value());
}

TEST_CASE("after a failure nothing is claimed until the backoff is over") {
  Flight flight;
  ClaimPlan plan{limits()};
  plan.reset(start);
  const auto look = plan.next(start, flight);
  plan.failed(*look, start);
  plan.hint(start);
  CHECK_FALSE(plan.next(start, flight).has_value());
  CHECK(plan.wake_at() > start);
  CHECK(plan.next(plan.wake_at(), flight).has_value());
}

TEST_CASE("only lanes that are ours are claimed, by lane and by a flat look") {
  Flight flight;
  ClaimPlan plan = in_backlog(flight);
  plan.set_lanes(4, LaneSet{0b0101});
  const auto first = plan.next(start, flight);
  const auto second = plan.next(start, flight);
  REQUIRE((first && second));
  CHECK(first->lane == LaneId{0});
  CHECK(second->lane == LaneId{2});
  CHECK_FALSE(plan.next(start, flight).has_value());
  plan.set_lanes(4, LaneSet{});
  plan.claimed(*first, {}, start);
  plan.claimed(*second, {}, start);
  plan.hint(start + Millis{100});
  CHECK_FALSE(plan.next(start + Millis{100}, flight).has_value());
}

TEST_CASE("a lane that joins under backlog is claimed at once") {
  Flight flight;
  ClaimPlan plan = in_backlog(flight);
  plan.set_lanes(4, LaneSet{0b0001});
  REQUIRE(plan.next(start, flight).has_value());
  plan.set_lanes(4, LaneSet{0b1001});
  const auto joined = plan.next(start, flight);
  REQUIRE(joined.has_value());
  CHECK(joined->lane == LaneId{3});
}

TEST_CASE("a claim under way covers its lane, a flat look covers every lane") {
  Flight flight;
  ClaimPlan plan{limits()};
  plan.reset(start);
  const auto look = plan.next(start, flight);
  REQUIRE(look.has_value());
  CHECK(plan.covers(LaneId{3}));
  plan.claimed(*look, {.rows = 50, .more = true}, start);
  CHECK_FALSE(plan.covers(LaneId{3}));
  const auto claim = plan.next(start, flight);
  REQUIRE(claim.has_value());
  CHECK(plan.covers(*claim->lane));
  CHECK_FALSE(plan.covers(LaneId{3}));
}

TEST_CASE("a claim of some lanes asks for their shards, and every shard is of one lane") {
  CHECK(shards_of(LaneSet{0b10}, 32) == std::vector{Shard{1}, Shard{33}});
  std::size_t shards = 0;
  for (std::size_t lane = 0; lane < 5; ++lane) shards += shards_of(LaneSet{}.set(lane), 5).size();
  CHECK(shards == static_cast<std::size_t>(shard_count));
}
