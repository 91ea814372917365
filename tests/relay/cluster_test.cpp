// The real outboxd before a cluster of three brokers that die, freeze and come back.

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include "tests/relay/numbered.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

// A row for each key, all sent: from then on the table knows which partition a key has.
void settle_keys(RelayRig& rig, const std::string& topic, int keys) {
  insert_numbered(rig, topic, 1, keys, keys);
  rig.eventually_none_pending(Millis{60'000});
}

// Partitions that rows wait for, by their keys' first rows.
std::string waiting_for(RelayRig& rig) {
  return rig.ask(
      "SELECT DISTINCT k.kafka_partition FROM outbox_msg m JOIN outbox_msg k ON k.msg_key = m.msg_key AND "
      "k.status = "
      "'SENT' AND k.id <= 300 WHERE m.status = 'PENDING' ORDER BY 1");
}

int peak_mib(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      int kib = 0;
      status >> kib;
      return kib / 1024;
    }
  return 0;
}

}  // namespace

TEST_CASE(
    "a partition without a leader stops nobody else: the others flow within a second, memory is bounded, and "
    "its rows go out in order when it is back") {
  if (!KafkaCluster::shared().real()) return;
  KafkaCluster kafka({.brokers = 3, .settings = {"default.replication.factor=1", "min.insync.replicas=1"}});
  RelayRig rig{{.source = "poll_interval: 100ms",
                .pipeline = "    publish: { in_flight_rows: 6000 }\n",
                .kafka = kafka.bootstrap()}};
  const std::string topic = kafka.new_topic("straggler", 3);
  Process& relay = rig.start();
  settle_keys(rig, topic, 300);

  kafka.kill(3);
  // A third of them has no leader: more than may be in flight.
  insert_numbered(rig, topic, 301, 40'200, 300);
  rig.await(
      "only one partition's rows wait", [&] { return waiting_for(rig).size() == 1; }, Millis{60'000});
  CHECK(relay.errors().find("partition_away") != std::string::npos);

  const std::string away = waiting_for(rig);
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body) SELECT topic, msg_key, to_json(40200 + row_number() "
      "OVER "
      "(ORDER BY id)) FROM outbox_msg WHERE id <= 300 AND kafka_partition <> $1::int",
      pg::Params{}.untyped(away));
  rig.await("those that came later are sent too", [&] {
    return waiting_for(rig) == away &&
           rig.ask("SELECT count(*) FROM outbox_msg WHERE body::text::int > 40200 AND status = 'PENDING'") ==
               "0";
  });
  const int slowest =
      std::stoi(rig.ask("SELECT ceil(1000 * extract(epoch FROM max(sent_at - created_at))) FROM outbox_msg "
                        "WHERE body::text::int > 40200"));
  MESSAGE("the slowest of the others took " << slowest << " ms, memory " << peak_mib(relay.pid()) << " MiB");
  CHECK(slowest < 1000);
  CHECK(peak_mib(relay.pid()) < 200);

  const int others = std::stoi(rig.ask("SELECT count(*) FROM outbox_msg WHERE body::text::int > 40200"));
  kafka.start(3);
  rig.eventually_none_pending(Millis{60'000});
  complete_and_in_order(kafka, topic, 40'200 + others);
}

TEST_CASE(
    "brokers killed, frozen and restarted in turn under load, the controller and then all of them away: the "
    "relay goes on by itself, in order") {
  if (!KafkaCluster::shared().real()) return;
  KafkaCluster kafka({.brokers = 3, .settings = {"broker.session.timeout.ms=3000"}});
  RelayRig rig{{.source = "poll_interval: 100ms",
                .kafka = kafka.bootstrap(),
                .properties = ", socket.timeout.ms: 3000"}};
  const std::string topic = kafka.new_topic("rolling", 6);
  Process& relay = rig.start();
  int rows = 0;
  const auto load = [&] {
    insert_numbered(rig, topic, rows + 1, rows + 2000, 100);
    rows += 2000;
  };
  const auto flows = [&] {
    load();
    rig.eventually_none_pending(Millis{60'000});
  };
  flows();
  for (int node = 1; node <= 3; ++node) {
    load();
    kafka.kill(node);
    flows();  // with two of three
    load();
    kafka.start(node);
    flows();
  }
  load();
  kafka.pause(2);
  flows();
  load();
  kafka.resume(2);
  flows();
  load();
  kafka.kill(0);  // the controller: no leader moves
  flows();
  kafka.start(0);
  for (int node = 1; node <= 3; ++node) kafka.kill(node);
  load();
  rig.await(
      "it says that Kafka is away", [&] { return relay.errors().find("kafka_down") != std::string::npos; },
      Millis{60'000});
  CHECK(rig.count("PENDING") != "0");
  const MonoTime back =
      std::chrono::steady_clock::now() + Millis{std::getenv("OUTBOX_LONG_TESTS") != nullptr ? 180'000 : 0};
  rig.await(
      "three minutes, where there is time", [&] { return std::chrono::steady_clock::now() >= back; },
      Millis{200'000});
  for (int node = 1; node <= 3; ++node) kafka.start(node);
  flows();
  CHECK(rig.count("SENT") == std::to_string(rows));
  complete_and_in_order(kafka, topic, rows);
  CHECK(relay.running());
  CHECK(relay.errors().find("producer_finished") == std::string::npos);
}
