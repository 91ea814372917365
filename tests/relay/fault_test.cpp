#include <doctest/doctest.h>

#include <csignal>

#include "tests/relay/numbered.hpp"

using namespace outbox;
using namespace outbox::test;

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
