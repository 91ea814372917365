// What an instance knew before its lanes were another's for a while, on the real shell over the stand-ins.

#include <doctest/doctest.h>

#include <algorithm>

#include "relay/shell/pipeline.hpp"
#include "tests/support/fakes/fake_broker.hpp"
#include "tests/support/fakes/fake_source.hpp"

using namespace outbox;
using namespace outbox::test;
using namespace outbox::relay;
using namespace std::chrono_literals;

namespace {

constexpr Millis lease_ttl{1000};

struct Relay {
  Relay() {
    kafka.create("t", 1);
    PipelineOptions options;
    options.name = "floors";
    options.owner = "one";
    options.waking = Waking::poll;
    options.lease_ttl = lease_ttl;
    options.slow_look = Millis{0};  // so that looks go by the floors
    pipeline = std::make_unique<Pipeline>(std::move(options), loop, source, broker, log::Logger{});
    pipeline->start();
  }
  RowId insert(const std::string& key, const std::string& body) {
    StoredRow row;
    row.topic = "t";
    row.key = key;
    row.body = body;
    row.shard = Shard{1};
    const RowId id = database.insert(row);
    database.commit(id);
    return id;
  }
  void run(Millis time) { clock.run(clock.now() + time); }
  // Another instance takes all lanes for a moment, as after a stall of this one.
  void lanes_move_and_return() {
    database.clock_step += 24h;
    const LeaseReply others = lease_of_another();
    run(1500ms);
    database.give_back("two", others.held, Leaving::yes);
    run(1500ms);
  }
  LeaseReply lease_of_another() {
    return database.lease({"two", 8, lease_ttl, 0}, database.clock(clock.now()));
  }

  Chance chance{1};
  SimClock clock;
  SimLoop loop{clock};
  FakeDatabase database;
  FakeKafka kafka;
  SourceFaults source_faults;
  BrokerFaults broker_faults;
  FakeSource source{clock, loop, database, chance, source_faults};
  FakeBroker broker{clock, loop, kafka, chance, broker_faults};
  std::unique_ptr<Pipeline> pipeline;
};

}  // namespace

// The mark of a row is refused because another instance has its lane; that one gives the lane back before it
// sent the row. What was learned under the earlier epoch would leave the row out, and let later ones of its
// key pass.
TEST_CASE("a lane that another instance had and gave back is claimed from its beginning") {
  Relay r;
  r.insert("k", "before");  // the topic is known from now on
  r.run(500ms);
  r.kafka.away_until = r.clock.now() + 5s;
  const RowId first = r.insert("k", "first");
  r.run(4990ms);                // it is on its way, and the floors rise above it
  r.database.on_lanes = [] {};  // the notification of it is lost
  r.database.clock_step = 24h;
  const LeaseReply others = r.lease_of_another();
  REQUIRE(others.held.size() == 8);
  r.run(600ms);  // acknowledged before the loss is known, and its mark is refused
  CHECK(r.pipeline->figures(0).counters.lane_lost == 1);
  REQUIRE(r.database.row(first).status == RowStatus::pending);
  r.database.give_back("two", others.held, Leaving::yes);
  const RowId second = r.insert("k", "second");
  r.run(3s);  // less than a sweep would take
  CHECK(r.database.row(first).status == RowStatus::sent);
  CHECK(r.database.row(second).status == RowStatus::sent);
  const auto& log = r.kafka.find("t")->logs[0];
  CHECK(log.size() == 4);  // the first one twice
  CHECK(r.database.row(first).offset->value < r.database.row(second).offset->value);
}

TEST_CASE(
    "lanes come back after another instance had moved to more partitions: no key goes back to the old ones") {
  Relay r;
  r.run(500ms);
  const std::string key = "k";  // of which 1 and 7 partitions make different ones
  const RowId first = r.insert(key, "first");
  r.run(1s);
  REQUIRE(r.database.row(first).partition == Partition{0});
  r.kafka.create("t", 7);
  r.database.repin("t", 7);  // by the other instance, whose next row of the key goes by the new count
  r.lanes_move_and_return();
  const RowId second = r.insert(key, "second");
  r.run(2s);
  REQUIRE(r.database.row(second).status == RowStatus::sent);
  CHECK(r.database.row(second).partition != Partition{0});
}
