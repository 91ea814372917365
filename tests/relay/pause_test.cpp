#include <doctest/doctest.h>

#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

void insert(RelayRig& rig, const std::string& topic, const std::string& key, int from, int to) {
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body) SELECT $1, $2, to_json(i) FROM generate_series($3::int, "
      "$4::int) i",
      pg::Params{}.text(topic).text(key).i32(from).i32(to));
}

std::vector<std::string> numbers(int from, int to) {
  std::vector<std::string> out;
  for (int i = from; i <= to; ++i) out.push_back(std::to_string(i));
  return out;
}

}  // namespace

TEST_CASE("a paused topic waits while others go on, and after resume it is sent in order") {
  RelayRig rig;
  auto& kafka = KafkaCluster::shared();
  const std::string paused = kafka.new_topic("paused", 2);
  const std::string other = kafka.new_topic("other", 1);
  rig.start();
  insert(rig, paused, "K", 1, 5);
  rig.eventually_none_pending();
  const auto done = rig.outboxd({"pause", paused, "--reason", "maintenance"});
  REQUIRE_MESSAGE(done.status.code == 0, done.errors);
  CHECK(done.output.starts_with("rig: paused"));
  insert(rig, paused, "K", 6, 20);
  insert(rig, other, "K", 1, 3);
  rig.await("the paused rows are held", [&] { return rig.count("HELD") == "15"; });
  rig.await("the others are sent", [&] { return rig.count("SENT") == "8"; });
  CHECK(rig.ask("SELECT scope, reason FROM outbox_hold") == "topic|operator: maintenance");
  CHECK(rig.outboxd({"pause", paused, "--reason", "again"}).output == "rig: was on hold already\n");
  CHECK(rig.outboxd({"resume", paused}).output == "rig: let go, with 15 rows that waited\n");
  rig.await("all are sent", [&] { return rig.count("SENT") == "23"; });
  CHECK(bodies_of(kafka.read_all(paused), "K") == numbers(1, 20));
}

TEST_CASE("a topic that was missing and then paused stays paused when Kafka has it again") {
  RelayRig rig;
  const std::string topic = KafkaCluster::unique_topic("paused-missing");
  insert(rig, topic, "K", 1, 3);
  Process& relay = rig.start();
  rig.await("the relay holds the missing topic", [&] { return rig.count("HELD") == "3"; });
  CHECK(rig.outboxd({"pause", topic, "--reason", "maintenance"}).output.starts_with("rig: paused"));
  CHECK(rig.ask("SELECT reason FROM outbox_hold") == "operator: maintenance");
  KafkaCluster::shared().create_topic(topic);
  rig.await(
      "the relay has seen the topic",
      [&] { return relay.errors().find("topic_released") != std::string::npos; }, Millis{60'000});
  insert(rig, topic, "K", 4, 4);
  rig.await("the new row waits as well", [&] { return rig.count("HELD") == "4"; });
  CHECK(rig.outboxd({"resume", topic}).output == "rig: let go, with 4 rows that waited\n");
  rig.await("all are sent", [&] { return rig.count("SENT") == "4"; });
  CHECK(bodies_of(KafkaCluster::shared().read_all(topic), "K") == numbers(1, 4));
}

TEST_CASE("a paused key waits alone") {
  RelayRig rig;
  auto& kafka = KafkaCluster::shared();
  const std::string topic = kafka.new_topic("key", 2);
  REQUIRE(rig.outboxd({"pause", topic, "--key", "A", "--reason", "audit"}).status.code == 0);
  rig.start();
  insert(rig, topic, "A", 1, 3);
  insert(rig, topic, "B", 1, 3);
  rig.await("B is sent and A held", [&] { return rig.count("SENT") == "3" && rig.count("HELD") == "3"; });
  CHECK(rig.outboxd({"resume", topic, "--key", "A"}).status.code == 0);
  rig.await("A is sent", [&] { return rig.count("SENT") == "6"; });
  CHECK(bodies_of(kafka.read_all(topic), "A") == numbers(1, 3));
}

TEST_CASE("replay sends what was sent again, with the same ids, and keeps the reason") {
  RelayRig rig;
  auto& kafka = KafkaCluster::shared();
  const std::string topic = kafka.new_topic("replay", 1);
  const std::string other = kafka.new_topic("kept", 1);
  rig.start();
  insert(rig, topic, "K", 1, 7);
  insert(rig, other, "K", 1, 2);
  rig.eventually_none_pending();
  CHECK(rig.outboxd({"replay", "--reason", "x"}).status.code == 2);
  const auto dry = rig.outboxd({"replay", "--topic", topic, "--reason", "lost", "--dry-run"});
  CHECK_MESSAGE(dry.output == "rig: would send 7 rows again, ids 1 to 7\n", dry.errors);
  CHECK(rig.count("SENT") == "9");
  const auto done = rig.outboxd({"replay", "--topic", topic, "--reason", "lost", "--rate", "5"});
  CHECK_MESSAGE(done.output == "rig: sends 7 rows again\n", done.errors);
  // A claim that begins above what was sent must not pass them by: each batch counts.
  CHECK(rig.ask("SELECT times FROM outbox_released") == "2");
  rig.await("they are sent again",
            [&] { return kafka.read_all(topic).size() == 14 && rig.count("SENT") == "9"; });
  const auto records = kafka.read_all(topic);
  std::map<std::string, int> copies;
  for (const KafkaRecord& r : records) copies[r.header("outbox-id").value()] += 1;
  CHECK(copies.size() == 7);
  for (const auto& [id, count] : copies) CHECK(count == 2);
  CHECK(kafka.read_all(other).size() == 2);
  CHECK(rig.ask("SELECT DISTINCT generation, last_error FROM outbox_msg WHERE id <= 7") ==
        "1|replayed: lost");
  CHECK(rig.outboxd({"replay", "--id", "1", "2", "--until", "2001-01-01", "--reason", "x"}).output ==
        "rig: sends 0 rows again\n");
}
