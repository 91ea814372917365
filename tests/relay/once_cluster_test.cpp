// delivery: exactly_once while brokers of a cluster of three go away. The real outboxd, a cluster of each
// test's own.

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <sstream>

#include "base/crash_point.hpp"
#include "relay/core/lanes/ledger.hpp"
#include "tests/relay/once.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

constexpr Millis long_patience{90'000};
constexpr Millis shown_by{25'000};  // before its transaction is given up, after 30 s

class Cluster {
 public:
  KafkaCluster kafka{{.brokers = 3, .settings = {"broker.session.timeout.ms=3000"}}};

  // Of the lane's transactions.
  int coordinator(RelayRig& rig, int lane) {
    const std::string id =
        "outboxd-rig-" + rig.ask("SELECT ledger FROM outbox_ledger LIMIT 1") + "-1-" + std::to_string(lane);
    std::istringstream said(kafka.run_tool({"transactions", "describe", "--transactional-id", id}));
    std::string first;
    for (std::string line; std::getline(said, line);)
      if (line.find(id) != std::string::npos) std::istringstream(line) >> first;
    REQUIRE_MESSAGE(!first.empty(), said.str());
    return std::stoi(first);
  }
  void topic_on(const std::string& name, int node) {
    kafka.run_tool({"topics", "--create", "--topic", name, "--replica-assignment", std::to_string(node),
                    "--config", "min.insync.replicas=1"});
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string metric(RelayRig& rig, const std::string& sample) {
  std::istringstream lines(rig.shown("/metrics").body);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(sample + " ")) return line.substr(sample.size() + 1);
  return "";
}

RigOptions options_for(Cluster& cluster) {
  RigOptions options = exactly_once();
  options.kafka = cluster.kafka.bootstrap();
  options.admin = admin_socket;
  return options;
}

}  // namespace

TEST_CASE(
    "exactly once: the coordinator of an open transaction is killed, and another time frozen amid its "
    "commit: "
    "the lane resumes by itself, each row is seen once, in order") {
  if (!real_kafka() || !crash_points_compiled) return;
  Cluster cluster;
  auto options = options_for(cluster);
  // The first transaction makes the coordinator known; those after it, repeats too, wait before they commit.
  for (int pass = 2; pass <= 6; ++pass)
    options.env["OUTBOX_CRASH_AT"] +=
        (pass > 2 ? "," : "") + std::string{"once_ledger_written:"} + std::to_string(pass) + ":sleep=3000";
  RelayRig rig(std::move(options));
  const std::string topic = cluster.kafka.new_topic("once-coordinator", 3);
  Process& relay = rig.start({.lanes = 1});
  // Each row is a transaction of its own.
  const auto in_kafka = [&](int count) {
    rig.await(
        "the row is in Kafka", [&] { return std::ssize(cluster.kafka.read_all(topic)) >= count; },
        long_patience);
  };
  insert_numbered(rig, topic, 1, 1);
  rig.eventually_none_pending(long_patience);

  int node = cluster.coordinator(rig, 0);
  insert_numbered(rig, topic, 2, 2);
  in_kafka(2);
  cluster.kafka.kill(node);
  rig.eventually_none_pending(long_patience);
  cluster.kafka.start(node);

  node = cluster.coordinator(rig, 0);
  insert_numbered(rig, topic, 3, 3);
  in_kafka(3);
  cluster.kafka.pause(node);
  rig.eventually_none_pending(long_patience);
  cluster.kafka.resume(node);
  insert_numbered(rig, topic, 4, 300);
  rig.eventually_none_pending(long_patience);
  relay.kill(SIGTERM);
  CHECK(relay.wait(Millis{60'000}).code == 0);
  // Whoever kills it has the commit answered by its successor; one that is frozen answers nothing.
  CHECK(unclear_commits(rig) > 0);
  each_once(rig, topic, 300, cluster.kafka);
}

TEST_CASE(
    "exactly once: a partition is away: the lane with a transaction there stops and is shown, the others go "
    "on, and it resumes by itself") {
  if (!real_kafka()) return;
  Cluster cluster;
  RelayRig rig(options_for(cluster));
  const std::string topic = cluster.kafka.new_topic("once-away", 3);
  const std::string away = KafkaCluster::unique_topic("once-away-alone");
  Process& relay = rig.start();
  insert_numbered(rig, topic, 1, 80, 40);
  rig.eventually_none_pending(long_patience);
  // Not where the coordinator is, so that what stops is the partition alone.
  const int node = cluster.coordinator(rig, 0) % 3 + 1;
  cluster.topic_on(away, node);
  insert_numbered(rig, away, 1, 5, 1);
  rig.eventually_none_pending(long_patience);
  cluster.kafka.kill(node);
  insert_numbered(rig, away, 6, 10, 1);
  const std::string lane =
      rig.ask("SELECT max(shard % 8) FROM outbox_msg WHERE topic = $1", pg::Params{}.text(away));
  rig.await(
      "the lane is shown as stopped",
      [&] {
        const auto lanes = stopped_lanes(rig);
        return lanes.size() == 1 && std::to_string(lanes[0]["lane"].get<int>()) == lane;
      },
      shown_by);
  int rows = 80;
  const std::string others_pending =
      "SELECT count(*) FROM outbox_msg WHERE status = 'PENDING' AND shard % 8 <> " + lane;
  rig.await(
      "it is not ready, the others send, and everything tells why",
      [&] {
        insert_numbered(rig, topic, rows + 1, rows + 40, 40);
        rows += 40;
        rig.await(
            "the rows of other lanes are sent", [&] { return rig.ask(others_pending) == "0"; },
            Millis{10'000});
        const HttpReply ready = rig.shown("/readyz");
        return ready.status == 503 && has(ready.body, "lane " + lane + " has sent nothing for ");
      },
      long_patience);
  CHECK(metric(rig, "outboxd_lanes_stopped{pipeline=\"rig\"}") == "1");
  CHECK(std::stod(metric(rig, "outboxd_lane_stopped_seconds{pipeline=\"rig\",lane=\"" + lane + "\"}")) > 10);
  CHECK(std::stoi(metric(rig, "outboxd_transactions_total{pipeline=\"rig\"}")) > 8);
  rig.await("`outboxd status` tells it", [&] {
    return has(rig.outboxd({"status"}).output, "stopped: \"lane " + lane + " has sent nothing for ");
  });
  CHECK(std::stoi(rig.count("PENDING")) >= 5);
  cluster.kafka.start(node);
  rig.eventually_none_pending(long_patience);
  rig.await("it is ready again", [&] { return rig.shown("/readyz").status == 200; });
  CHECK(stopped_lanes(rig).empty());
  relay.kill(SIGTERM);
  CHECK(relay.wait(Millis{60'000}).code == 0);
  each_once(rig, topic, rows, cluster.kafka);
  each_once(rig, away, 10, cluster.kafka);
}
