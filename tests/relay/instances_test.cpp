// Several instances of the real outboxd over one table: who has which lane, and what a hand-over does to the
// order.

#include <chrono>
#include <csignal>
#include <cstdlib>

#include "tests/relay/numbered.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

Millis since(MonoTime start) {
  return std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - start);
}

// Lanes of each live owner, by name: "a/rig 4 b/rig 4".
std::string owners(RelayRig& rig) {
  return rig.ask(
      "SELECT owner || ' ' || count(*) FROM outbox_lease WHERE owner IS NOT NULL AND lease_until > now() "
      "GROUP BY "
      "owner ORDER BY owner");
}
void await_owners(RelayRig& rig, const std::string& wanted) {
  rig.await("the lanes are dealt as " + wanted, [&] { return owners(rig) == wanted; });
}
}  // namespace

TEST_CASE("instances share the lanes evenly, and whoever stops hands over at once") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("share", 3);
  Process& a = rig.start({.instance = "a"});
  await_owners(rig, "a/rig 8");
  Process& b = rig.start({.instance = "b"});
  await_owners(rig, "a/rig 4 b/rig 4");
  rig.start({.instance = "c"});
  await_owners(rig, "a/rig 3 b/rig 3 c/rig 2");
  insert_numbered(rig, topic, 1, 3000, 200);
  rig.eventually_none_pending();
  a.kill(SIGTERM);
  CHECK(a.wait().code == 0);
  await_owners(rig, "b/rig 4 c/rig 4");
  b.kill(SIGTERM);
  CHECK(b.wait().code == 0);
  await_owners(rig, "c/rig 8");
  insert_numbered(rig, topic, 3001, 3200, 200);
  rig.eventually_none_pending();
  CHECK(complete_and_in_order(KafkaCluster::shared(), topic, 3200) == 0);
  CHECK(rig.ask("SELECT instance FROM outbox_instance") == "c/rig");
}

TEST_CASE(
    "two relays, one key, 10,000 numbered rows, its lane handed over again and again: in order, none twice") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("one-key", 3);
  Process* running = &rig.start({.instance = "relay0"});
  rig.await("the first has the lanes", [&] { return owners(rig) == "relay0/rig 8"; });
  for (int round = 0; round < 10; ++round) {
    Process& next = rig.start({.instance = "relay" + std::to_string(round + 1)});
    insert_numbered(rig, topic, round * 1000 + 1, round * 1000 + 700, 1);
    rig.await("both have lanes",
              [&] { return rig.ask("SELECT count(DISTINCT owner) FROM outbox_lease") == "2"; });
    insert_numbered(rig, topic, round * 1000 + 701, round * 1000 + 1000, 1);
    running->kill(SIGTERM);
    CHECK(running->wait().code == 0);
    running = &next;
  }
  rig.eventually_none_pending();
  CHECK(complete_and_in_order(KafkaCluster::shared(), topic, 10'000) == 0);
}

// OUTBOX_LONG_TESTS=1: paused for a minute instead of just longer than its lease.
TEST_CASE(
    "three relays, one paused with a batch in its hands: the others go on in order, its late marks are "
    "refused") {
  RelayRig rig{{.source = "poll_interval: 100ms, batch_rows: 200"}};
  KafkaCluster& kafka = KafkaCluster::shared();
  const std::string topic = kafka.new_topic("paused", 3);
  insert_numbered(rig, topic, 1, 3000, 1);

  // No mark gets through, so what Kafka has acknowledged gathers in the relay.
  pg::Session lock = must(pg::Session::connect({.uri = rig.uri()}));
  must(lock.exec("BEGIN"));
  must(lock.exec("LOCK TABLE outbox_msg IN SHARE MODE"));
  Process& paused = rig.start({.instance = "a"});
  rig.await("Kafka has the batch", [&] { return kafka.read_all(topic).size() >= 200; });
  paused.kill(SIGSTOP);
  const std::size_t before = kafka.read_all(topic).size();
  const MonoTime start = std::chrono::steady_clock::now();

  rig.start({.instance = "b"});
  rig.start({.instance = "c"});
  await_owners(rig, "b/rig 4 c/rig 4");
  rig.await("the new owner sends it again", [&] { return kafka.read_all(topic).size() >= before + 200; });
  must(lock.exec("ROLLBACK"));
  rig.eventually_none_pending();
  const Millis pause{std::getenv("OUTBOX_LONG_TESTS") != nullptr ? 60'000 : 0};
  rig.await(
      "the pause is over", [&] { return since(start) >= pause; }, pause + patience);

  paused.kill(SIGCONT);
  rig.await("it saw that its lanes are lost and its marks refused", [&] {
    return paused.errors().find("lanes_lost") != std::string::npos &&
           paused.errors().find("marks_refused") != std::string::npos;
  });
  rig.await("all three share again",
            [&] { return rig.ask("SELECT count(DISTINCT owner) FROM outbox_lease") == "3"; });
  insert_numbered(rig, topic, 3001, 3300, 1);
  rig.eventually_none_pending();
  const int copies = complete_and_in_order(kafka, topic, 3300);
  CHECK(copies >= 200);
  CHECK(copies <= 1000);
  CHECK(rig.ask("SELECT count(*) FROM outbox_msg WHERE kafka_offset IS NULL") == "0");
}

TEST_CASE("a paused relay that wakes under load changes nothing: nothing lost, keys in order") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("zombie", 3);
  Process& zombie = rig.start({.instance = "a"});
  insert_numbered(rig, topic, 1, 100);
  rig.eventually_none_pending();
  insert_numbered(rig, topic, 101, 30'000);
  rig.await("it is under way", [&] { return rig.count("SENT") != "100"; });
  zombie.kill(SIGSTOP);
  rig.start({.instance = "b"});
  await_owners(rig, "b/rig 8");
  zombie.kill(SIGCONT);
  rig.await("it saw that its lanes are lost",
            [&] { return zombie.errors().find("lanes_lost") != std::string::npos; });
  insert_numbered(rig, topic, 30'001, 30'100);
  rig.eventually_none_pending(Millis{60'000});
  complete_and_in_order(KafkaCluster::shared(), topic, 30'100);
}

TEST_CASE(
    "an instance is killed: its lanes are with the others within the ttl and a second, and nothing is lost") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("killed", 3);
  rig.start({.instance = "a"});
  Process& killed = rig.start({.instance = "b"});
  await_owners(rig, "a/rig 4 b/rig 4");
  insert_numbered(rig, topic, 1, 20'000, 100);
  rig.await("it is under way", [&] { return rig.count("SENT") != "0"; });
  const MonoTime start = std::chrono::steady_clock::now();
  killed.kill(SIGKILL);
  rig.await("the other has all lanes", [&] { return owners(rig) == "a/rig 8"; });
  const Millis took = since(start);
  MESSAGE("take-over after kill -9 with a ttl of 2000 ms: " << took.count() << " ms");
  CHECK(took < Millis{3000});
  rig.eventually_none_pending(Millis{60'000});
  complete_and_in_order(KafkaCluster::shared(), topic, 20'000);
}

TEST_CASE(
    "an instance is told to stop: its lanes are with the others within a second, and nothing is sent twice") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("stopped", 3);
  rig.start({.instance = "a"});
  Process& stopped = rig.start({.instance = "b"});
  await_owners(rig, "a/rig 4 b/rig 4");
  insert_numbered(rig, topic, 1, 20'000, 100);
  rig.await("it is under way", [&] { return rig.count("SENT") != "0"; });
  const MonoTime start = std::chrono::steady_clock::now();
  stopped.kill(SIGTERM);
  rig.await("the other has all lanes", [&] { return owners(rig) == "a/rig 8"; });
  const Millis took = since(start);
  MESSAGE("take-over after SIGTERM: " << took.count() << " ms");
  CHECK(took < Millis{1000});
  CHECK(stopped.wait().code == 0);
  rig.eventually_none_pending(Millis{60'000});
  CHECK(complete_and_in_order(KafkaCluster::shared(), topic, 20'000) == 0);
}

TEST_CASE(
    "another count of lanes while instances run: all drain, switch, and nothing is lost, twice or out of "
    "order") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("dealt", 3);
  Process& a = rig.start({.instance = "a"});
  await_owners(rig, "a/rig 8");
  Process& b = rig.start({.instance = "b"});
  await_owners(rig, "a/rig 4 b/rig 4");
  insert_numbered(rig, topic, 1, 20'000, 100);
  rig.await("they are under way", [&] { return rig.count("SENT") != "0"; });
  rig.start({.instance = "c", .lanes = 16});
  await_owners(rig, "a/rig 6 b/rig 5 c/rig 5");
  CHECK(rig.ask("SELECT DISTINCT lanes, generation FROM outbox_lease") == "16|2");
  insert_numbered(rig, topic, 20'001, 22'000, 100);
  a.kill(SIGTERM);
  b.kill(SIGTERM);
  await_owners(rig, "c/rig 16");
  insert_numbered(rig, topic, 22'001, 22'500, 100);
  rig.eventually_none_pending(Millis{60'000});
  CHECK(complete_and_in_order(KafkaCluster::shared(), topic, 22'500) == 0);
}

TEST_CASE(
    "two instances, every connection of both terminated again and again: nothing is lost, keys stay in "
    "order") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("cut-off", 3);
  rig.start({.instance = "a"});
  rig.start({.instance = "b"});
  await_owners(rig, "a/rig 4 b/rig 4");
  for (int round = 0; round < 8; ++round) {
    insert_numbered(rig, topic, round * 2000 + 1, round * 2000 + 2000, 50);
    rig.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'outboxd%' AND "
        "datname = current_database()");
  }
  rig.eventually_none_pending(Millis{60'000});
  complete_and_in_order(KafkaCluster::shared(), topic, 16'000);
  await_owners(rig, "a/rig 4 b/rig 4");
}
