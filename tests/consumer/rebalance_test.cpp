// Members that come, go, freeze and are slow, with the money invariant after each.

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "ledger.hpp"
#include "tests/support/eventually.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

/// A member of the ledger's group that lives as long as this object.
std::unique_ptr<Process> member(const Ledger& ledger, const std::vector<std::string>& more = {}) {
  return std::make_unique<Process>(OUTBOX_LEDGER_CONSUMER, ledger.options("20", more));
}

bool said(const Process& process, std::string_view what) {
  return process.errors().find(what) != std::string::npos;
}

std::ptrdiff_t times_said(const Process& process, std::string_view what) {
  std::ptrdiff_t count = 0;
  const std::string text = process.errors();
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

void await_entries(Ledger& ledger, int count) {
  eventually(
      std::to_string(count) + " entries", [&] { return ledger.entries() >= count; }, Millis{90'000});
}

void stop(Process& process) {
  process.kill(SIGTERM);
  CHECK(process.wait(Millis{30'000}).code == 0);
}

}  // namespace

namespace {

/// Members join, leave and are killed each second under load; then the ledger must be right.
void storm(Ledger ledger, const std::vector<std::string>& more) {
  constexpr int rounds = 8, per_round = 150;
  std::mt19937 random(20'261'129);
  std::vector<std::unique_ptr<Process>> members;
  members.push_back(member(ledger, more));
  int sent = 0;
  for (int round = 0; round < rounds; ++round) {
    ledger.send(sent, per_round);
    sent += per_round;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{1};
    if (members.size() < 3) {
      members.push_back(member(ledger, more));
    } else {
      const auto leaving = members.begin() + static_cast<std::ptrdiff_t>(random() % members.size());
      (*leaving)->kill(round % 2 == 0 ? SIGTERM : SIGKILL);
      static_cast<void>((*leaving)->wait(Millis{30'000}));
      members.erase(leaving);
    }
    static_cast<void>(
        happens_within(Millis{1000}, [&] { return std::chrono::steady_clock::now() >= until; }));
  }
  await_entries(ledger, sent);
  for (auto& one : members) stop(*one);
  CHECK(ledger.money_is_right(sent));
}

}  // namespace

TEST_CASE(
    "a storm: members join, leave and are killed every second under load, and every transfer counts once") {
  storm(Ledger(6), {});
}

TEST_CASE(
    "a storm over members that keep the order by key with three workers each: every transfer counts once") {
  storm(Ledger(4, 8), {"--workers", "3", "--order", "key"});
}

TEST_CASE("a member that froze past its session and wakes again does no harm") {
  Ledger ledger(2);
  ledger.send(0, 400);
  auto frozen = member(ledger);
  eventually(
      "it works", [&] { return ledger.entries() >= 20; }, Millis{40'000});
  frozen->kill(SIGSTOP);
  auto heir = member(ledger);
  eventually(
      "the other has its partitions", [&] { return said(*heir, "partition_assigned"); }, Millis{60'000});
  ledger.send(400, 100);
  // What the frozen one has in an open transaction waits for it, and with it the heir's copies: so it may
  // end.
  frozen->kill(SIGCONT);
  await_entries(ledger, 500);
  stop(*frozen);
  stop(*heir);
  CHECK(ledger.money_is_right(500));
}

TEST_CASE(
    "a static member that is killed and comes back in time gets its partitions, and the other never "
    "notices") {
  Ledger ledger(2);
  ledger.send(0, 40);
  auto first = std::make_unique<Process>(OUTBOX_LEDGER_CONSUMER, ledger.as_member("one"));
  Process second(OUTBOX_LEDGER_CONSUMER, ledger.as_member("two"));
  const auto share = [&] { return said(*first, "partition_assigned") && said(second, "partition_assigned"); };
  eventually("both have one", share, Millis{40'000});
  await_entries(ledger, 40);
  eventually("the group is quiet", [&] {
    return times_said(*first, "partition_assigned") - times_said(*first, "partition_revoked") == 1 &&
           times_said(second, "partition_assigned") - times_said(second, "partition_revoked") == 1;
  });
  const auto before = times_said(second, "partition_");
  first->kill(SIGKILL);
  static_cast<void>(first->wait());
  first = std::make_unique<Process>(OUTBOX_LEDGER_CONSUMER, ledger.as_member("one"));
  ledger.send(40, 40);
  await_entries(ledger, 80);
  CHECK(times_said(second, "partition_") == before);
  stop(*first);
  stop(second);
  CHECK(ledger.money_is_right(80));
}

TEST_CASE("a handler that takes longer than max.poll.interval.ms loses no partition, since polling goes on") {
  Ledger ledger(1);
  std::atomic<int> calls = 0;
  std::mutex mutex;
  std::string log;
  RunningConsumer consumer({.name = ledger.topic,
                            .postgres = ledger.db.database.uri(),
                            .kafka = {{"bootstrap.servers", ledger.kafka}, {"max.poll.interval.ms", "6000"}},
                            .topics = {ledger.topic},
                            .horizon_check = horizon_check(KafkaCluster::shared()),
                            .log =
                                [&](std::string_view line) {
                                  const std::lock_guard lock(mutex);
                                  log.append(line).append("\n");
                                }},
                           [&](Transaction& tx, const Message& m) {
                             record_effect(tx, m);
                             if (m.offset() != 0) return;
                             ++calls;
                             static_cast<void>(tx.exec("SELECT pg_sleep(9)"));
                           });
  ledger.send(0, 20);
  eventually(
      "all is applied", [&] { return ledger.db.effects() == 20; }, Millis{60'000});
  eventually("the offset passed",
             [&] { return committed(ledger.kafka, ledger.topic, ledger.topic, 0) == 20; });
  consumer.stop();
  CHECK(calls == 1);
  CHECK(log.find("lost=true") == std::string::npos);
  CHECK(log.find("MAX_POLL") == std::string::npos);
}

TEST_CASE("stop ends within its limit though a handler is stuck, and what it held is applied later, once") {
  Ledger ledger(1);
  ledger.send(0, 1);
  std::atomic<bool> inside = false, stuck = true;
  ConsumerOptions options{.name = ledger.topic,
                          .postgres = ledger.db.database.uri(),
                          .kafka = {{"bootstrap.servers", ledger.kafka}},
                          .topics = {ledger.topic},
                          .horizon_check = horizon_check(KafkaCluster::shared()),
                          .drain_timeout = Millis{500},
                          .log = [](std::string_view) {}};
  const auto handler = [&](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    inside = true;
    if (stuck) static_cast<void>(tx.exec("SELECT pg_sleep(600)"));
  };
  {
    RunningConsumer consumer(options, handler);
    eventually(
        "it is stuck", [&] { return inside.load(); }, Millis{40'000});
    const auto start = std::chrono::steady_clock::now();
    consumer.stop();
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds{15});
  }
  CHECK(ledger.db.effects() == 0);
  stuck = false;
  RunningConsumer again(options, handler);
  eventually(
      "it is applied", [&] { return ledger.db.effects() == 1; }, Millis{40'000});
}
