// delivery: exactly_once, as a read_committed reader sees it. Real PostgreSQL, a real Kafka, the real
// outboxd.

#include <doctest/doctest.h>

#include <csignal>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/crash_point.hpp"
#include "tests/relay/once.hpp"

using namespace outbox;
using namespace outbox::test;

TEST_CASE(
    "exactly once: rows go through transactions, and a read_committed reader sees each once, in order") {
  if (!real_kafka()) return;
  RelayRig rig(exactly_once());
  const std::string topic = KafkaCluster::shared().new_topic("once", 3);
  insert_numbered(rig, topic, 1, 300);
  Process& relay = rig.start();
  rig.eventually_none_pending();
  insert_numbered(rig, topic, 301, 400);
  rig.eventually_none_pending();
  relay.kill(SIGTERM);
  CHECK(relay.wait(Millis{30'000}).code == 0);
  each_once(rig, topic, 400);
}

TEST_CASE("exactly once: killed at every step of a transaction, nothing is lost and nothing is seen twice") {
  if (!real_kafka() || !crash_points_compiled) return;
  auto options = exactly_once();
  options.ttl = "1s";
  RelayRig rig(std::move(options));
  const std::string topic = KafkaCluster::shared().new_topic("once-killed", 3);
  int rows = 0;
  for (const auto& row : crash_points) {
    if (!row.name.starts_with("once_")) continue;
    CAPTURE(std::string{row.name});
    insert_numbered(rig, topic, rows + 1, rows + 100);
    rows += 100;
    rig.options().env["OUTBOX_CRASH_AT"] = std::string{row.name} + ":3";
    Process& relay = rig.start();
    CHECK(relay.wait(Millis{60'000}).signal == SIGKILL);
  }
  rig.options().env.clear();
  rig.start();
  rig.eventually_none_pending(Millis{60'000});
  each_once(rig, topic, rows);
}

TEST_CASE("exactly once: a replay of rows that the ledger still names is sent after a restart") {
  if (!real_kafka()) return;
  RelayRig rig(exactly_once());
  const std::string topic = KafkaCluster::shared().new_topic("once-replay", 1);
  insert_numbered(rig, topic, 1, 20);
  Process& relay = rig.start();
  rig.eventually_none_pending();
  relay.kill(SIGKILL);
  relay.wait();
  rig.ask(
      "UPDATE outbox_msg SET status = 'PENDING', generation = generation + 1, sent_at = NULL, "
      "kafka_partition = NULL, kafka_offset = NULL");
  rig.start();
  rig.eventually_none_pending(Millis{60'000});
  const auto records = KafkaCluster::shared().read_all(topic, Isolation::read_committed);
  std::map<std::string, int> copies;
  for (const KafkaRecord& r : records) copies[r.body.value()] += 1;
  CHECK(std::ssize(copies) == 20);
  for (const auto& [body, count] : copies) CHECK(count == 2);
}

TEST_CASE(
    "exactly once: a paused owner that wakes after its lanes were taken over commits nothing any more") {
  if (!real_kafka() || !crash_points_compiled) return;
  auto options = exactly_once();
  options.ttl = "1s";
  options.env["OUTBOX_CRASH_AT"] = "once_ledger_written:2:sleep=6000";
  RelayRig rig(std::move(options));
  const std::string topic = KafkaCluster::shared().new_topic("once-zombie", 3);
  insert_numbered(rig, topic, 1, 200);
  Process& zombie = rig.start({.instance = "zombie"});
  rig.await("most rows are sent", [&] { return std::stoi(rig.count("SENT")) > 100; });
  zombie.kill(SIGSTOP);
  rig.options().env.clear();
  rig.start({.instance = "heir"});
  rig.eventually_none_pending(Millis{60'000});
  zombie.kill(SIGCONT);
  insert_numbered(rig, topic, 201, 300);
  rig.eventually_none_pending(Millis{60'000});
  zombie.kill(SIGTERM);
  zombie.wait(Millis{60'000});
  each_once(rig, topic, 300);
}

TEST_CASE(
    "exactly once: a zombie that has not seen that its lanes are lost writes and commits what its heir has "
    "sent: fencing alone stops it") {
  if (!real_kafka() || !crash_points_compiled) return;
  const std::string ledger = KafkaCluster::unique_topic("ledger");
  auto options = exactly_once(ledger);
  options.ttl = "1s";
  RelayRig rig(std::move(options));
  const std::string topic = KafkaCluster::shared().new_topic("once-unfenced", 3);
  insert_numbered(rig, topic, 1, 50);
  // Its lane sleeps before the ledger's record, so no reader of the ledger waits for its transaction;
  // its loop sleeps before it gives the lane up.
  Process& zombie = rig.start(
      {.instance = "zombie",
       .lanes = 1,
       .env = {{"OUTBOX_CRASH_AT", "once_transaction_open:1:sleep=5000,relay_lanes_lost:1:sleep=5000"}}});
  rig.await("its rows are in Kafka", [&] { return KafkaCluster::shared().read_all(topic).size() == 50; });
  zombie.kill(SIGSTOP);
  REQUIRE(KafkaCluster::shared().read_all(ledger).empty());
  Process& heir = rig.start({.instance = "heir", .lanes = 1});
  rig.eventually_none_pending(Millis{60'000});
  zombie.kill(SIGCONT);
  heir.kill(SIGTERM);
  CHECK(heir.wait(Millis{30'000}).code == 0);
  insert_numbered(rig, topic, 51, 100);
  rig.eventually_none_pending(Millis{60'000});  // by the zombie, whose old transaction has ended by then
  each_once(rig, topic, 100);
}

TEST_CASE("exactly once: another count of lanes begins only when every old lane is fenced and settled") {
  if (!real_kafka() || !crash_points_compiled) return;
  auto options = exactly_once();
  options.ttl = "1s";
  options.env["OUTBOX_CRASH_AT"] = "once_transaction_committed:2";
  RelayRig rig(std::move(options));
  const std::string topic = KafkaCluster::shared().new_topic("once-lanes", 3);
  insert_numbered(rig, topic, 1, 200, 40);
  CHECK(rig.start({.instance = "eight", .lanes = 8}).wait(Millis{60'000}).signal == SIGKILL);
  insert_numbered(rig, topic, 201, 300, 40);
  rig.options().env["OUTBOX_CRASH_AT"] = "once_ledger_written:1:sleep=20000";
  Process& zombie = rig.start({.instance = "zombie", .lanes = 8});
  rig.await(
      "some rows are sent", [&] { return std::stoi(rig.count("SENT")) > 100; }, Millis{60'000});
  zombie.kill(SIGSTOP);
  rig.options().env.clear();
  rig.start({.instance = "sixteen", .lanes = 16});
  rig.eventually_none_pending(Millis{60'000});
  CHECK(rig.ask("SELECT string_agg(generation || '/' || lanes, ' ') FROM outbox_ledger") == "2/16");
  zombie.kill(SIGCONT);
  insert_numbered(rig, topic, 301, 400, 40);
  rig.eventually_none_pending(Millis{60'000});
  each_once(rig, topic, 400);
}

TEST_CASE(
    "exactly once: ledger show tells what a killed relay has committed and not marked, until it is "
    "marked") {
  if (!real_kafka() || !crash_points_compiled) return;
  auto options = exactly_once();
  options.ttl = "1s";
  options.env["OUTBOX_CRASH_AT"] = "once_transaction_committed";
  RelayRig rig(std::move(options));
  const std::string topic = KafkaCluster::shared().new_topic("once-shown", 1);
  insert_numbered(rig, topic, 1, 50, 1);  // one key: one lane
  CHECK(rig.start().wait(Millis{60'000}).signal == SIGKILL);
  // Of each lane: generation, lane, rows, lowest and highest id, offset, unmarked, written.
  const auto unmarked = [&] {
    const Finished shown = rig.outboxd({"ledger", "show"});
    REQUIRE_MESSAGE(shown.status.code == 0, shown.errors);
    std::istringstream lines(shown.output);
    int rows = 0, open = 0;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::vector<std::string> fields(std::istream_iterator<std::string>{words}, {});
      if (fields.size() != 8 || fields[0] != "1") continue;
      rows += std::stoi(fields[2]);
      open += std::stoi(fields[6]);
    }
    CHECK(rows > 0);
    return open;
  };
  CHECK(unmarked() > 0);
  CHECK(rig.count("PENDING") == "50");
  rig.options().env.clear();
  rig.start();
  rig.eventually_none_pending(Millis{60'000});
  CHECK(unmarked() == 0);
  each_once(rig, topic, 50);
}

TEST_CASE(
    "exactly once: ids that a restore, or a sequence that begins again, gives out again name new rows, and "
    "each is sent") {
  if (!real_kafka()) return;
  RelayRig rig(exactly_once());
  KafkaCluster& kafka = KafkaCluster::shared();
  const std::string topic = kafka.new_topic("once-restored", 1);
  int written = 0;
  const auto run = [&] {
    Process& relay = rig.start();
    rig.eventually_none_pending(Millis{60'000});
    relay.kill(SIGTERM);
    CHECK(relay.wait(Millis{30'000}).code == 0);
    return relay.errors();
  };
  const auto write = [&](int count) {
    insert_numbered(rig, topic, written + 1, written + count);
    written += count;
  };
  write(10);
  run();
  write(20);
  run();
  rig.ask("DELETE FROM outbox_msg WHERE id > 10");
  rig.ask("SELECT setval(pg_get_serial_sequence('outbox_msg', 'id'), 10)");
  write(20);  // before the relay is back
  CHECK(run().find("rows_replaced") != std::string::npos);
  rig.ask("TRUNCATE outbox_msg RESTART IDENTITY");
  write(20);
  run();
  const auto records = kafka.read_all(topic, Isolation::read_committed);
  std::map<std::string, int> copies;
  for (const KafkaRecord& r : records) copies[r.body.value()] += 1;
  CHECK(std::ssize(copies) == written);
  CHECK(std::ssize(records) == written);
}
