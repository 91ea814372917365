// What only a real cluster shows of the transactor: its ledger's topic.

#include "tests/contract/kafka_transactor_fixture.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

struct Kafka : KafkaTransactorFixture {
  Kafka() : KafkaTransactorFixture(KafkaCluster::shared()) {}
};
using Run = TransactorRun<Kafka>;

}  // namespace

TEST_CASE("the ledger is made compacted, and widened for more lanes, with what it holds kept") {
  Run run{2};
  const std::string topic = run.fixture.topic(1);
  run.open(Who::one, first_lane);
  const OwnedMessage a{topic, "k", "a"};
  REQUIRE(run.send(Who::one, first_lane, {{&a, 0}}).committed);
  run.lanes(12);  // opened again, it is judged as if somebody else had made it
  CHECK(run.open(Who::one, {2, relay::LaneId{11}}).empty());
  CHECK(run.open(Who::other, first_lane).size() == 1);
}

TEST_CASE("a ledger whose records would be deleted is refused by name, with what to do") {
  Run run;
  run.fixture.cluster().create_topic(run.fixture.ledger, 4, {{"cleanup.policy", "delete"}});
  const auto refused = run.try_open(Who::one, first_lane);
  REQUIRE(!refused.has_value());
  CHECK(refused.error().disposition == Disposition::fatal);
  CAPTURE(refused.error().text());
  CHECK(refused.error().text().find("cleanup.policy is delete") != std::string::npos);
  CHECK(refused.error().text().find("--topic " + run.fixture.ledger) != std::string::npos);
}

TEST_CASE("a ledger that another outbox has written is refused, not read as one's own") {
  Run run;
  const std::string topic = run.fixture.topic(1);
  run.open(Who::one, first_lane);
  const OwnedMessage a{topic, "k", "a"};
  REQUIRE(run.send(Who::one, first_lane, {{&a, 0}}).committed);
  run.other_outbox();
  const auto refused = run.try_open(Who::other, first_lane);
  REQUIRE(!refused.has_value());
  CHECK(refused.error().disposition == Disposition::fatal);
  CHECK(refused.error().text().find("written by another outbox") != std::string::npos);
}

TEST_CASE(
    "a record under a lane's key that no lane wrote is told from its own: left aside, and refused by name "
    "where "
    "it may have displaced it") {
  Run run{1};
  const std::string topic = run.fixture.topic(1);
  run.open(Who::one, first_lane);
  run.fixture.write_row(run.fixture.ledger, relay::ledger_key(first_lane), "{\"forged\":1}");
  auto refused = run.try_open(Who::one, first_lane);
  REQUIRE(!refused.has_value());
  CHECK(refused.error().disposition == Disposition::fatal);
  CAPTURE(refused.error().text());
  CHECK(refused.error().text().find("which no lane wrote") != std::string::npos);

  Run other{1};
  other.open(Who::one, first_lane);
  const OwnedMessage a{topic, "k", "a"};
  REQUIRE(other.send(Who::one, first_lane, {{&a, 0}}).committed);
  for (int n = 0; n < 40; ++n)
    other.fixture.write_row(other.fixture.ledger, relay::ledger_key(first_lane), "{\"forged\":1}");
  const auto rows = other.open(Who::one, first_lane);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].id == a.view().id);
}

TEST_CASE("the last record is found below any number of aborted ones") {
  Run run{1};
  const std::string topic = run.fixture.topic(1);
  run.open(Who::one, first_lane);
  const OwnedMessage a{topic, "k", "a"}, lost{topic, "k", "lost"};
  REQUIRE(run.send(Who::one, first_lane, {{&a, 0}}).committed);
  run.fixture.write_aborted(run.fixture.ledger, 60);
  const auto rows = run.open(Who::one, first_lane);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].id == a.view().id);
}
