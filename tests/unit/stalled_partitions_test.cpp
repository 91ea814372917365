#include "relay/core/kafka/stalled_partitions.hpp"

#include <doctest/doctest.h>

using namespace outbox;
using namespace outbox::relay;

namespace {

constexpr Millis patience{500};
constexpr Partition first{0}, second{1};

MonoTime at(int ms) {
  return MonoTime{} + Millis{ms};
}

}  // namespace

TEST_CASE("a partition is away once it owes reports and gave none for the patience, and is told once") {
  StalledPartitions s;
  s.published(first, at(0));
  CHECK(s.wake_at(patience) == at(500));
  CHECK(s.overdue(at(499), patience).empty());
  CHECK(s.overdue(at(500), patience) == std::vector{first});
  CHECK(s.overdue(at(900), patience).empty());
  CHECK(s.away(first));
  CHECK_FALSE(s.away(second));
  CHECK(s.wake_at(patience) == MonoTime::max());
}

TEST_CASE("a partition that reports now and then is slow, not away") {
  StalledPartitions s;
  for (int n = 0; n < 10; ++n) s.published(first, at(0));
  for (int n = 1; n < 10; ++n) {
    CHECK_FALSE(s.reported(first, at(n * 400)));
    CHECK(s.overdue(at(n * 400 + 300), patience).empty());
  }
}

TEST_CASE("one that owes nothing is never away, however long it is quiet") {
  StalledPartitions s;
  s.published(first, at(0));
  CHECK_FALSE(s.reported(first, at(10)));
  CHECK(s.overdue(at(100'000), patience).empty());
  s.published(first, at(100'000));
  CHECK(s.overdue(at(100'100), patience).empty());
}

TEST_CASE("the first report brings it back, and what was set aside is taken out once") {
  StalledPartitions s;
  s.published(first, at(0));
  s.published(second, at(0));
  CHECK(s.overdue(at(500), patience).size() == 2);
  s.defer(first, {{RowId{7}, {}}, Shard{0}, LaneId{3}});
  s.defer(first, {{RowId{8}, {}}, Shard{0}, LaneId{4}});
  s.defer(second, {{RowId{9}, {}}, Shard{0}, LaneId{3}});
  CHECK(s.reported(first, at(600)));
  CHECK_FALSE(s.away(first));
  CHECK(s.away(second));
  CHECK(s.take(first).size() == 2);
  CHECK(s.take(first).empty());
  LaneSet lanes;
  lanes.set(4);
  CHECK(s.take(lanes).empty());
  lanes.set(3);
  REQUIRE(s.take(lanes).size() == 1);
}

TEST_CASE("how many partitions owe reports is counted, each once") {
  StalledPartitions s;
  s.published(first, at(0));
  s.published(first, at(1));
  s.published(second, at(2));
  CHECK(s.owing() == 2);
  CHECK_FALSE(s.reported(first, at(3)));
  CHECK(s.owes(first));
  CHECK_FALSE(s.reported(first, at(4)));
  CHECK_FALSE(s.owes(first));
  CHECK(s.owing() == 1);
}

TEST_CASE("one that is back and still owes is away again after the patience") {
  StalledPartitions s;
  s.published(first, at(0));
  s.published(first, at(0));
  CHECK(s.overdue(at(500), patience).size() == 1);
  CHECK(s.away_count() == 1);
  CHECK(s.reported(first, at(700)));
  CHECK(s.away_count() == 0);
  CHECK(s.wake_at(patience) == at(1200));
  CHECK(s.overdue(at(1199), patience).empty());
  CHECK(s.overdue(at(1200), patience) == std::vector{first});
}

TEST_CASE("what claims up to a certain one brought is closed out, of one partition or of all") {
  StalledPartitions s;
  CHECK_FALSE(s.any_closed(ClaimSerial{1}));
  s.close(first, ClaimSerial{12});
  CHECK(s.any_closed(ClaimSerial{12}));
  CHECK_FALSE(s.any_closed(ClaimSerial{13}));
  CHECK(s.closed(first, ClaimSerial{12}));
  CHECK_FALSE(s.closed(first, ClaimSerial{13}));
  CHECK_FALSE(s.closed(second, ClaimSerial{12}));
  CHECK_FALSE(s.closed(ClaimSerial{12}));
  s.close(ClaimSerial{14});
  CHECK(s.closed(ClaimSerial{14}));
  CHECK_FALSE(s.any_closed(ClaimSerial{15}));
}

TEST_CASE("where keys move to other partitions, a claim that was closed out for one is so for all") {
  StalledPartitions s;
  s.close(first, ClaimSerial{12});
  s.close_where_any();
  CHECK(s.closed(ClaimSerial{12}));
  CHECK_FALSE(s.closed(ClaimSerial{13}));
}
