#include <doctest/doctest.h>

#include <csignal>
#include <set>

#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

void insert_numbered(RelayRig& rig, const std::string& topic, int from, int to) {
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body) SELECT $1, (i % 10)::text, to_json(i) FROM "
      "generate_series($2::int, $3::int) i",
      pg::Params{}.text(topic).i32(from).i32(to));
}

// Every number is there, and the first occurrences of a key rise.
void complete_and_in_order(KafkaCluster& kafka, const std::string& topic, int count) {
  const auto records = kafka.read_all(topic);
  std::set<int> seen;
  std::map<std::string, int> last;
  for (const KafkaRecord& r : records) {
    const int number = std::stoi(r.body.value());
    if (!seen.insert(number).second) continue;
    CHECK(number > last[*r.key]);
    last[*r.key] = number;
  }
  CHECK(std::ssize(seen) == count);
}

}  // namespace

TEST_CASE("SIGTERM: what Kafka acknowledged is marked, the lanes are given back, exit 0") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("term", 3);
  insert_numbered(rig, topic, 1, 50'000);
  Process& relay = rig.start();
  rig.await("it is under way", [&] { return rig.count("SENT") != "0"; });
  relay.kill(SIGTERM);
  CHECK(relay.wait(Millis{30'000}).code == 0);
  CHECK(rig.count("SENT") == std::to_string(KafkaCluster::shared().read_all(topic).size()));
  CHECK(rig.ask("SELECT count(*) FROM outbox_lease WHERE owner IS NOT NULL AND lease_until > now()") == "0");
  rig.start();
  rig.eventually_none_pending(Millis{60'000});
  CHECK(KafkaCluster::shared().read_all(topic).size() == 50'000);
}

TEST_CASE("a standby takes over when the owner is killed, and nothing is lost") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("standby", 3);
  Process& owner = rig.start();
  insert_numbered(rig, topic, 1, 100);
  rig.eventually_none_pending();
  Process& standby = rig.start();
  rig.await("the second one waits", [&] { return standby.errors().find("standby") != std::string::npos; });
  insert_numbered(rig, topic, 101, 20'000);
  owner.kill(SIGKILL);
  rig.eventually_none_pending(Millis{60'000});
  complete_and_in_order(KafkaCluster::shared(), topic, 20'000);
  CHECK(rig.ask("SELECT DISTINCT epoch FROM outbox_lease") == "2");
}

TEST_CASE("a paused owner that wakes after the take-over changes nothing: its marks are refused") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("zombie", 3);
  Process& zombie = rig.start();
  insert_numbered(rig, topic, 1, 100);
  rig.eventually_none_pending();
  insert_numbered(rig, topic, 101, 30'000);
  rig.await("it is under way", [&] { return rig.count("SENT") != "100"; });
  zombie.kill(SIGSTOP);
  rig.start();
  rig.eventually_none_pending(Millis{60'000});
  zombie.kill(SIGCONT);
  rig.await("it saw that its lanes are lost",
            [&] { return zombie.errors().find("lanes_lost") != std::string::npos; });
  insert_numbered(rig, topic, 30'001, 30'100);
  rig.eventually_none_pending();
  complete_and_in_order(KafkaCluster::shared(), topic, 30'100);
}

TEST_CASE("PostgreSQL crashes and comes back under load: the relay recovers by itself, in order") {
  PostgresServer server;
  RelayRig rig{{.server = server.uri()}};
  const std::string topic = KafkaCluster::shared().new_topic("database", 3);
  insert_numbered(rig, topic, 1, 30'000);
  Process& relay = rig.start();
  rig.await("it is under way", [&] { return rig.count("SENT") != "0"; });
  server.stop(StopMode::immediate);
  rig.await("it says that the database is away",
            [&] { return relay.errors().find("postgres_down") != std::string::npos; });
  server.start();
  rig.reconnect();
  rig.eventually_none_pending(Millis{60'000});
  complete_and_in_order(KafkaCluster::shared(), topic, 30'000);
  CHECK(relay.running());
}

TEST_CASE("every connection of the relay terminated, again and again: nothing is lost, keys stay in order") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("terminated", 3);
  rig.start();
  for (int round = 0; round < 8; ++round) {
    insert_numbered(rig, topic, round * 2000 + 1, round * 2000 + 2000);
    rig.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'outboxd%' AND "
        "datname = current_database()");
  }
  rig.eventually_none_pending(Millis{60'000});
  complete_and_in_order(KafkaCluster::shared(), topic, 16'000);
}

TEST_CASE("Kafka crashes and comes back: no message dies of it, and keys stay in order") {
  if (!KafkaCluster::shared().real()) return;
  KafkaCluster kafka;
  RelayRig rig{{.kafka = kafka.bootstrap()}};
  const std::string topic = kafka.new_topic("broker", 3);
  rig.start();
  insert_numbered(rig, topic, 1, 5000);
  rig.await("it is under way", [&] { return rig.count("SENT") != "0"; });
  kafka.kill();
  insert_numbered(rig, topic, 5001, 20'000);
  kafka.start();
  rig.eventually_none_pending(Millis{90'000});
  CHECK(rig.count("SENT") == "20000");
  complete_and_in_order(kafka, topic, 20'000);
}

TEST_CASE("more partitions: the relay moves to the new count, and no key goes back and forth") {
  if (!KafkaCluster::shared().real()) return;
  RelayRig rig{{.pipeline = ""}};
  const std::string topic = KafkaCluster::shared().new_topic("grown", 1);
  insert_numbered(rig, topic, 1, 100);
  Process& first = rig.start();
  rig.eventually_none_pending();
  CHECK(rig.ask("SELECT partitions FROM outbox_topic WHERE topic = $1", pg::Params{}.text(topic)) == "1");
  first.kill(SIGTERM);
  first.wait();
  KafkaCluster::shared().add_partitions(topic, 4);
  insert_numbered(rig, topic, 101, 200);
  rig.start();
  rig.eventually_none_pending();
  CHECK(rig.ask("SELECT partitions FROM outbox_topic WHERE topic = $1", pg::Params{}.text(topic)) == "4");
  CHECK(KafkaCluster::shared().read_all(topic).size() == 200);
}
