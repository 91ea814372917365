// A service that is killed, at a moment of our choosing and at any moment.

#include <doctest/doctest.h>

#include <random>

#include "ledger.hpp"
#include "tests/support/eventually.hpp"

using namespace outbox;
using namespace outbox::test;

TEST_CASE(
    "killed between the database's commit and Kafka's: everything comes again, and nothing takes effect "
    "again") {
  Ledger ledger(2);
  ledger.send(0, 200);
  {
    Process service(OUTBOX_LEDGER_CONSUMER, ledger.options("3600000"));
    eventually(
        "all entries", [&] { return ledger.entries() == 200; }, Millis{40'000});
    service.kill(SIGKILL);
    static_cast<void>(service.wait());
  }
  Process again(OUTBOX_LEDGER_CONSUMER, ledger.options("50"));
  const auto passed = [&] {
    return committed(ledger.kafka, ledger.topic, ledger.topic, 0) == 100 &&
           committed(ledger.kafka, ledger.topic, ledger.topic, 1) == 100;
  };
  eventually("the offsets passed", passed, Millis{40'000});
  again.kill(SIGTERM);
  CHECK(again.wait().code == 0);
  INFO(again.output());
  CHECK(again.output().find("fresh=0 duplicate=") == 0);
  CHECK(again.output().find("duplicate=0") == std::string::npos);
  CHECK(ledger.entries() == 200);
  CHECK(ledger.db.number("SELECT sum(balance)::bigint FROM ledger_account") == 200);
}

namespace {

/// Kills the service at random moments under load, lets it finish, and looks at the ledger.
void kill_again_and_again(Ledger ledger, const std::vector<std::string>& more) {
  std::mt19937 random(20'261'129);
  constexpr int total = 1500;
  int sent = 0;
  for (int round = 0; round < 4; ++round) {
    ledger.send(sent, total / 5);
    sent += total / 5;
    Process service(OUTBOX_LEDGER_CONSUMER, ledger.options("20", more));
    const auto enough = ledger.entries() + std::uniform_int_distribution(1, 250)(random);
    static_cast<void>(happens_within(Millis{20'000}, [&] { return ledger.entries() >= enough; }));
    service.kill(SIGKILL);
    static_cast<void>(service.wait());
  }
  ledger.send(sent, total - sent);
  Process last(OUTBOX_LEDGER_CONSUMER, ledger.options("20", more));
  eventually(
      "all entries", [&] { return ledger.entries() >= total; }, Millis{60'000});
  last.kill(SIGTERM);
  CHECK(last.wait().code == 0);
  CHECK(ledger.money_is_right(total));
}

}  // namespace

TEST_CASE(
    "killed at any moment, again and again: each transfer is applied once, in the order of its account") {
  kill_again_and_again(Ledger(3), {});
}

TEST_CASE(
    "order by key, one partition, four workers, killed at any moment: once each, in the order of its "
    "account") {
  kill_again_and_again(Ledger(1, 16),
                       {"--workers", "4", "--order", "key", "--kafka-property", "group.instance.id=one"});
}
