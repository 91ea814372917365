// kill -9 at each crash point of the consumer: every transfer takes effect exactly once, in the order of its
// account.

#include <doctest/doctest.h>

#include "base/crash_point.hpp"
#include "ledger.hpp"
#include "tests/support/eventually.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

constexpr int total = 120;

void finish(Ledger& ledger, Process& service) {
  eventually(
      "all entries", [&] { return ledger.entries() >= total; }, Millis{60'000});
  const auto passed = [&] {
    return committed(ledger.kafka, ledger.topic, ledger.topic, 0) == total / 2 &&
           committed(ledger.kafka, ledger.topic, ledger.topic, 1) == total / 2;
  };
  eventually("the offsets passed", passed, Millis{40'000});
  service.kill(SIGTERM);
  CHECK(service.wait().code == 0);
  CHECK(ledger.money_is_right(total));
}

}  // namespace

TEST_CASE("the list of crash points has a row for each, in the order of the enum") {
  for (std::size_t i = 0; i < crash_points.size(); ++i)
    CHECK(static_cast<std::size_t>(crash_points[i].point) == i);
}

TEST_CASE("killed at each crash point of the consumer, early and late: exactly one effect") {
  if (!crash_points_compiled) return;
  for (const auto& row : crash_points) {
    if (!row.name.starts_with("consumer_") || row.point == CrashPoint::consumer_in_rebalance) continue;
    for (const int pass : {2, 5}) {
      CAPTURE(std::string(row.name));
      CAPTURE(pass);
      Ledger ledger(2);
      ledger.send(0, total);
      Process killed(OUTBOX_LEDGER_CONSUMER,
                     ledger.as_member("one", std::string(row.name) + ":" + std::to_string(pass)));
      const auto status = killed.wait(Millis{60'000});
      INFO(killed.errors());
      CHECK(status.signal == SIGKILL);
      CHECK(ledger.entries() < total);
      Process again(OUTBOX_LEDGER_CONSUMER, ledger.as_member("one"));
      finish(ledger, again);
    }
  }
}

TEST_CASE("killed while it hands partitions over: exactly one effect, by the one who takes them") {
  if (!crash_points_compiled) return;
  Ledger ledger(2);
  ledger.send(0, total / 2);
  auto leaving_options = ledger.options("3600000");  // what it applied is not committed to Kafka when it dies
  leaving_options.env["OUTBOX_CRASH_AT"] = "consumer_in_rebalance";
  Process leaving(OUTBOX_LEDGER_CONSUMER, leaving_options);
  eventually(
      "it works", [&] { return ledger.entries() == total / 2; }, Millis{40'000});
  Process joining(OUTBOX_LEDGER_CONSUMER, ledger.options("20"));
  CHECK(leaving.wait(Millis{60'000}).signal == SIGKILL);
  ledger.send(total / 2, total - total / 2);
  finish(ledger, joining);
}

TEST_CASE("the handler fails on offset 10 and the process dies: 10 is not lost, and nothing passed it") {
  Ledger ledger(1);
  ledger.send(0, 30);
  {
    Process broken(OUTBOX_LEDGER_CONSUMER, ledger.options("20", {"--broken-offset", "10", "--kafka-property",
                                                                 "group.instance.id=one"}));
    eventually(
        "those before it are applied", [&] { return ledger.entries() == 10; }, Millis{40'000});
    eventually("their offset is committed",
               [&] { return committed(ledger.kafka, ledger.topic, ledger.topic, 0) == 10; });
    broken.kill(SIGKILL);
    static_cast<void>(broken.wait());
  }
  CHECK(ledger.entries() == 10);
  Process mended(OUTBOX_LEDGER_CONSUMER, ledger.as_member("one"));
  eventually(
      "all entries", [&] { return ledger.entries() >= 30; }, Millis{40'000});
  mended.kill(SIGTERM);
  CHECK(mended.wait().code == 0);
  CHECK(ledger.money_is_right(30));
}
