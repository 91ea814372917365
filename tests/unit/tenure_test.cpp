#include "relay/core/tenure.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace outbox;
using namespace outbox::relay;
using Change = Tenure::Change;

namespace {

constexpr Millis ttl{3000};
const MonoTime start{std::chrono::hours{1}};
const std::array<Lease, 2> epoch_1{Lease{LaneId{0}, Epoch{1}}, Lease{LaneId{1}, Epoch{1}}};
const std::array<Lease, 2> epoch_3{Lease{LaneId{0}, Epoch{3}}, Lease{LaneId{1}, Epoch{3}}};

Tenure held_since(MonoTime asked, Millis answer_took) {
  Tenure t{ttl, 2};
  t.requested(asked);
  CHECK(t.answered(epoch_1, Millis{0}, asked + answer_took) == Change::begun);
  return t;
}

}  // namespace

TEST_CASE("a tenure is counted from before it was asked for, with a tenth in hand") {
  Tenure t = held_since(start, Millis{1000});
  CHECK(t.ends_at() == start + Millis{2700});
  CHECK(t.expire(start + Millis{2699}) == Change::none);
  CHECK(t.expire(start + Millis{2700}) == Change::ended);
  CHECK_FALSE(t.active());
}

TEST_CASE("an answer that comes after the tenure's own end begins nothing") {
  Tenure t{ttl, 2};
  t.requested(start);
  CHECK(t.answered(epoch_1, Millis{0}, start + Millis{2700}) == Change::none);
  CHECK_FALSE(t.active());
  CHECK(t.request_due(start + Millis{2700}));
}

TEST_CASE("it is renewed at a third of its time, and only one request is under way") {
  Tenure t = held_since(start, Millis{10});
  CHECK_FALSE(t.request_due(start + Millis{999}));
  CHECK(t.request_due(start + Millis{1000}));
  t.requested(start + Millis{1000});
  CHECK_FALSE(t.request_due(start + Millis{2000}));
  CHECK(t.answered(epoch_1, Millis{0}, start + Millis{1010}) == Change::renewed);
  CHECK(t.ends_at() == start + Millis{3700});
}

TEST_CASE("other epochs mean that somebody had the lanes in between: the tenure ends") {
  Tenure t = held_since(start, Millis{10});
  t.requested(start + Millis{1000});
  CHECK(t.answered(epoch_3, Millis{0}, start + Millis{1010}) == Change::ended);
  CHECK_FALSE(t.leases()[0].has_value());
}

TEST_CASE(
    "a refused tenure asks again when the other's lease runs out, at the latest after a third of the ttl") {
  Tenure t{ttl, 2};
  t.requested(start);
  CHECK(t.answered({}, Millis{300}, start) == Change::none);
  CHECK(t.next_request() == start + Millis{300});
  t.requested(start + Millis{300});
  CHECK(t.answered({}, Millis{60'000}, start + Millis{300}) == Change::none);
  CHECK(t.next_request() == start + Millis{1300});
}

TEST_CASE("a failed request keeps what is held and is repeated soon") {
  Tenure t = held_since(start, Millis{10});
  t.requested(start + Millis{1000});
  t.failed(start + Millis{1200});
  CHECK(t.active());
  CHECK(t.request_due(start + Millis{1500}));
}
