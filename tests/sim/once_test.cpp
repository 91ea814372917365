// Exactly once, simulated: what a read_committed reader sees, under commits whose end is not known, late
// commits, fenced owners, replays, and lanes dealt again.

#include <doctest/doctest.h>

#include "tests/sim/seeds.hpp"

using namespace outbox;
using namespace outbox::test;

TEST_CASE("exactly once, one relay under faults: each row once, and once more for each replay") {
  laws_hold({.faults = Faults::on, .promise = Promise::exactly_once});
}

TEST_CASE("exactly once, three relays that come and go, each asking for other lanes: the same") {
  laws_hold({.faults = Faults::on,
             .relays = 3,
             .members = Members::come_and_go,
             .lanes = Lanes::differ,
             .promise = Promise::exactly_once});
}

TEST_CASE("exactly once while the server's clock jumps by a day each way: the same") {
  laws_hold({.faults = Faults::on,
             .relays = 3,
             .server_clock = ServerClock::jumps,
             .lanes = Lanes::differ,
             .promise = Promise::exactly_once});
}

TEST_CASE("exactly once, deleting what was sent: each row once") {
  laws_hold({.faults = Faults::on,
             .relays = 2,
             .after_sent = relay::AfterSent::erase,
             .promise = Promise::exactly_once});
}

TEST_CASE("the oracle catches a relay that opens a lane as if its ledger were empty") {
  CHECK(caught_after({.promise = Promise::exactly_once, .mutant = Mutant::forgets_ledger}) > 0);
}
TEST_CASE("the oracle catches a relay that does not see the ledger's newest record") {
  CHECK(caught_after({.promise = Promise::exactly_once, .mutant = Mutant::reads_ledger_short}) > 0);
}
TEST_CASE("the oracle catches a cluster that takes the commit of an earlier owner") {
  CHECK(caught_after({.relays = 2, .promise = Promise::exactly_once, .mutant = Mutant::fences_nobody}) > 0);
}
TEST_CASE("the oracle catches a relay that commits before the transaction before is durably marked") {
  CHECK(caught_after({.promise = Promise::exactly_once, .mutant = Mutant::marks_late}) > 0);
}
TEST_CASE("the oracle catches a ledger that vouches for a later sending of its row") {
  CHECK(caught_after({.promise = Promise::exactly_once, .mutant = Mutant::ignores_generations}) > 0);
}
TEST_CASE("the oracle catches a relay that deals lanes again and leaves the old ledgers unread") {
  CHECK(caught_after({.relays = 3,
                      .members = Members::come_and_go,
                      .lanes = Lanes::differ,
                      .promise = Promise::exactly_once,
                      .mutant = Mutant::leaves_old_ledgers}) > 0);
}
