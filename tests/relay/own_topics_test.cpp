// Rows that name a topic which is no destination: the relay's own ledger, and what is Kafka's own.

#include <doctest/doctest.h>

#include <csignal>

#include "tests/relay/once.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

void insert(RelayRig& rig, const std::string& topic, const std::string& key) {
  rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, $2, '{\"forged\":1}')",
          pg::Params{}.text(topic).text(key));
}

// Such rows wait, named; all others go out, also after a crash and in whatever lane.
void waits_alone(RigOptions options, const std::string& ledger) {
  options.admin = admin_socket;
  RelayRig rig(std::move(options));
  const std::string topic = KafkaCluster::shared().new_topic("others", 2);
  Process* relay = &rig.start({.lanes = 2});
  insert_numbered(rig, topic, 1, 50);
  rig.await("it works", [&] { return rig.count("SENT") == "50"; });
  insert(rig, ledger, "1/0");
  insert(rig, "outboxd-ledger-of-another", "1/0");
  insert(rig, "__consumer_offsets", "k");
  insert(rig, "__transaction_state", "k");
  insert_numbered(rig, topic, 51, 100);
  rig.await("the others are sent", [&] { return rig.count("SENT") == "100"; });
  rig.await("those are held", [&] { return rig.count("HELD") == "4"; });
  CHECK(rig.ask("SELECT count(*) FROM outbox_hold WHERE scope = 'topic' AND reason LIKE "
                "'kafka: it is %correct the row''s topic'") == "4");
  CHECK(rig.shown("/readyz").status == 200);
  CHECK(rig.logs().find("lane_stopped") == std::string::npos);
  relay->kill(SIGKILL);
  relay->wait();
  insert_numbered(rig, topic, 101, 150);
  rig.start({.lanes = 2});
  rig.await("the next one goes on", [&] { return rig.count("SENT") == "150"; });
}

}  // namespace

TEST_CASE("a row that names a ledger or a topic of Kafka's own waits alone, by name, and after a crash") {
  if (!KafkaCluster::shared().real()) return;
  const std::string ledger = KafkaCluster::unique_topic("ledger");
  waits_alone({.pipeline = "    ledger: { topic: " + ledger + " }\n"}, ledger);
}

TEST_CASE(
    "exactly once: a row that names the relay's own ledger or a topic of Kafka's own stops no lane, now or "
    "after a crash") {
  if (!real_kafka()) return;
  const std::string ledger = KafkaCluster::unique_topic("ledger");
  waits_alone(exactly_once(ledger), ledger);
}
