#include <doctest/doctest.h>

#include "tests/sim/seeds.hpp"

using namespace outbox;
using namespace outbox::test;

TEST_CASE("one relay under faults: nothing lost, marked only after the ack, keys in order") {
  laws_hold({.faults = Faults::on, .relays = 1});
}

TEST_CASE(
    "two relays share the lanes under faults: nothing lost, keys in order, never two owners of a lane") {
  laws_hold({.faults = Faults::on, .relays = 2});
}

TEST_CASE("three relays that come and go under faults, each asking for other lanes: the same laws") {
  laws_hold({.faults = Faults::on, .relays = 3, .members = Members::come_and_go, .lanes = Lanes::differ});
}

TEST_CASE(
    "the server's clock jumps by a day each way under faults: nothing lost, keys in order, it goes on") {
  laws_hold({.faults = Faults::on, .relays = 3, .server_clock = ServerClock::jumps});
}

TEST_CASE("polling only, deleting what was sent: nothing lost, keys in order") {
  laws_hold({.faults = Faults::on,
             .relays = 2,
             .waking = relay::Waking::poll,
             .after_sent = relay::AfterSent::erase});
}

TEST_CASE("a cluster that answers now and then that it takes a message later: nothing lost, keys in order") {
  laws_hold({.faults = Faults::on, .relays = 2, .cluster = Cluster::refuses_for_now});
}

TEST_CASE(
    "without faults each message is in Kafka exactly once, though instances come and go and lanes change") {
  each_seed({.faults = Faults::off, .relays = 3, .members = Members::come_and_go, .lanes = Lanes::differ},
            seed_choice().count, [](const World& world) { CHECK(world.duplicates() == 0); });
}

TEST_CASE("the oracle catches a relay that marks before the ack") {
  CHECK(caught_after({.mutant = Mutant::marks_before_ack}) > 0);
}
TEST_CASE("the oracle catches a relay that claims by id > last") {
  CHECK(caught_after({.mutant = Mutant::claims_by_cursor}) > 0);
}
TEST_CASE("the oracle catches a source that leaves scheduled rows out in silence") {
  CHECK(caught_after({.mutant = Mutant::hides_due_rows}) > 0);
}
TEST_CASE("the oracle catches a relay that forgets what is in flight") {
  CHECK(caught_after({.faults = Faults::off, .mutant = Mutant::forgets_in_flight}) > 0);
}
TEST_CASE("the oracle catches a relay whose dead message does not hold its key") {
  CHECK(caught_after({.mutant = Mutant::opens_the_gate}) > 0);
}
TEST_CASE("the oracle catches a database that marks under a lost lease") {
  CHECK(caught_after({.relays = 3, .mutant = Mutant::ignores_epochs}) > 0);
}
TEST_CASE("the oracle catches a relay that gives a lane back while rows of it are in flight") {
  CHECK(caught_after({.faults = Faults::off,
                      .relays = 2,
                      .members = Members::come_and_go,
                      .mutant = Mutant::gives_back_in_flight}) > 0);
}
TEST_CASE("the oracle catches a relay that goes on after a pause as if no time had passed") {
  CHECK(caught_after({.relays = 2, .mutant = Mutant::never_fences}) > 0);
}
