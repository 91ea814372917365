#include "relay/core/lanes/lane_leases.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace outbox;
using namespace outbox::relay;
using Change = LaneLeases::Change;

namespace {

constexpr Millis ttl{3000};
const MonoTime start{std::chrono::hours{1}};

std::vector<Lease> leases(std::initializer_list<std::int16_t> lanes, std::int64_t epoch = 1) {
  std::vector<Lease> out;
  for (const std::int16_t lane : lanes) out.push_back({LaneId{lane}, Epoch{epoch}});
  return out;
}

struct Answer {
  std::vector<Lease> held;
  std::int16_t share = 4;
  std::int16_t lanes = 4;
  std::optional<Millis> other_ends{};
};

Change answered(LaneLeases& t, MonoTime asked, const Answer& a, Millis took = Millis{10}) {
  t.requested(asked);
  return t.answered({a.held, a.lanes, a.share, a.other_ends}, asked + took);
}

LaneLeases holding_all(Millis took = Millis{10}) {
  LaneLeases t{ttl, 4};
  CHECK(answered(t, start, {.held = leases({0, 1, 2, 3})}, took) == Change::gained);
  return t;
}

std::string lanes_of(const LaneSet& set) {
  std::string out;
  for (std::size_t lane = 0; lane < set.size(); ++lane)
    if (set.test(lane)) out += std::to_string(lane);
  return out;
}

}  // namespace

TEST_CASE("a tenure is counted from before it was asked for, with a tenth in hand") {
  LaneLeases t = holding_all(Millis{1000});
  CHECK(t.ends_at() == start + Millis{2700});
  CHECK(t.expire(start + Millis{2699}) == Change::none);
  CHECK(t.expire(start + Millis{2700}) == Change::ended);
  CHECK_FALSE(t.active());
  CHECK(t.working().none());
}

TEST_CASE("an answer that comes after the tenure's own end begins nothing") {
  LaneLeases t{ttl, 4};
  CHECK(answered(t, start, {.held = leases({0})}, Millis{2700}) == Change::none);
  CHECK_FALSE(t.active());
  CHECK(t.request_due(start + Millis{2700}));
}

TEST_CASE("it is renewed at a third of its time, and only one request is under way") {
  LaneLeases t = holding_all();
  CHECK_FALSE(t.request_due(start + Millis{999}));
  CHECK(t.request_due(start + Millis{1000}));
  t.requested(start + Millis{1000});
  CHECK_FALSE(t.request_due(start + Millis{2000}));
  CHECK(t.answered({leases({0, 1, 2, 3}), 4, 4}, start + Millis{1010}) == Change::renewed);
  CHECK(t.ends_at() == start + Millis{3700});
}

TEST_CASE(
    "another epoch, or a lane that is missing, means that somebody had it in between: the tenure ends") {
  LaneLeases other_epoch = holding_all();
  auto held = leases({0, 1, 2});
  held.push_back({LaneId{3}, Epoch{3}});
  CHECK(answered(other_epoch, start + Millis{1000}, {.held = held}) == Change::ended);
  CHECK_FALSE(other_epoch.holds(LaneId{0}));
  CHECK(other_epoch.request_due(start + Millis{1010}));
  LaneLeases missing = holding_all();
  CHECK(answered(missing, start + Millis{1000}, {.held = leases({0, 1, 3})}) == Change::ended);
}

TEST_CASE("lanes that come later join, and the others go on under their epochs") {
  LaneLeases t{ttl, 4};
  CHECK(answered(t, start, {.held = leases({1}, 7)}) == Change::gained);
  auto held = leases({1}, 7);
  held.push_back({LaneId{2}, Epoch{4}});
  CHECK(answered(t, start + Millis{500}, {.held = held}) == Change::gained);
  CHECK(lanes_of(t.working()) == "12");
  CHECK(t.leases()[1]->epoch == Epoch{7});
  CHECK(t.leases()[2]->epoch == Epoch{4});
}

TEST_CASE(
    "what exceeds the share drains: it is not claimed any more, and stays ours until it is given back") {
  LaneLeases t = holding_all();
  CHECK(answered(t, start + Millis{1000}, {.held = leases({0, 1, 2, 3}), .share = 2}) == Change::renewed);
  CHECK(lanes_of(t.draining()) == "23");
  CHECK(lanes_of(t.working()) == "01");
  CHECK_FALSE(t.leases()[2].has_value());
  CHECK(t.holds(LaneId{2}));
  const Lease given = t.give(LaneId{2});
  CHECK(given.epoch == Epoch{1});
  CHECK_FALSE(t.holds(LaneId{2}));
  CHECK(lanes_of(t.draining()) == "3");
}

TEST_CASE("a lane that drains does so to its end, also where the share rises meanwhile") {
  LaneLeases t = holding_all();
  answered(t, start + Millis{1000}, {.held = leases({0, 1, 2, 3}), .share = 2});
  answered(t, start + Millis{2000}, {.held = leases({0, 1, 2, 3}), .share = 4});
  CHECK(lanes_of(t.draining()) == "23");
  CHECK(lanes_of(t.working()) == "01");
}

TEST_CASE("a lane that was given back is never worked again under that epoch, whatever a late answer says") {
  LaneLeases t = holding_all();
  answered(t, start + Millis{500}, {.held = leases({0, 1, 2, 3}), .share = 3});
  t.give(LaneId{3});
  CHECK(answered(t, start + Millis{600}, {.held = leases({0, 1, 2, 3})}) == Change::renewed);
  CHECK_FALSE(t.holds(LaneId{3}));
  const auto unheard = t.take_unheard();
  REQUIRE(unheard.size() == 1);
  CHECK(unheard[0].lane == LaneId{3});
  CHECK(t.take_unheard().empty());
  auto held = leases({0, 1, 2});
  held.push_back({LaneId{3}, Epoch{2}});
  CHECK(answered(t, start + Millis{700}, {.held = held}) == Change::gained);
  CHECK(t.holds(LaneId{3}));
}

TEST_CASE("the last lane given back ends the tenure without a loss") {
  LaneLeases t{ttl, 4};
  answered(t, start, {.held = leases({0})});
  answered(t, start + Millis{1000}, {.held = leases({0}), .share = 0});
  t.give(LaneId{0});
  CHECK_FALSE(t.active());
  CHECK(t.expire(start + Millis{9000}) == Change::none);
}

TEST_CASE("other lanes than before end the tenure, and the next answer begins one under their count") {
  LaneLeases t = holding_all();
  CHECK(answered(t, start + Millis{1000}, {.held = leases({0, 5}, 9), .share = 8, .lanes = 8}) ==
        Change::ended);
  CHECK(t.lanes() == 8);
  CHECK(answered(t, start + Millis{1100}, {.held = leases({0, 5}, 9), .share = 8, .lanes = 8}) ==
        Change::gained);
  CHECK(lanes_of(t.working()) == "05");
  CHECK(t.leases().size() == 8);
}

TEST_CASE("it asks again when another's lease runs out, and not sooner than in 50 ms") {
  LaneLeases t{ttl, 4};
  answered(t, start, {.held = {}, .other_ends = Millis{300}}, Millis{0});
  CHECK(t.next_request() == start + Millis{300});
  answered(t, start + Millis{300}, {.held = {}, .other_ends = Millis{0}}, Millis{0});
  CHECK(t.next_request() == start + Millis{350});
  answered(t, start + Millis{350}, {.held = {}, .other_ends = Millis{60'000}}, Millis{0});
  CHECK(t.next_request() == start + Millis{1350});
}

TEST_CASE("a hint is asked about at once, also one that comes while a request is under way") {
  LaneLeases t = holding_all();
  t.hint(start + Millis{20});
  CHECK(t.request_due(start + Millis{20}));
  t.requested(start + Millis{20});
  t.hint(start + Millis{25});
  CHECK(t.answered({leases({0, 1, 2, 3}), 4, 4}, start + Millis{30}) == Change::renewed);
  CHECK(t.request_due(start + Millis{30}));
  CHECK(answered(t, start + Millis{30}, {.held = leases({0, 1, 2, 3})}) == Change::renewed);
  CHECK_FALSE(t.request_due(start + Millis{1029}));
}

TEST_CASE("a failed request keeps what is held and is repeated soon") {
  LaneLeases t = holding_all();
  t.requested(start + Millis{1000});
  t.failed(start + Millis{1200});
  CHECK(t.active());
  CHECK(t.request_due(start + Millis{1500}));
}
