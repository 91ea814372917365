#include <doctest/doctest.h>

#include <string>

#include "tests/sim/world.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

std::string join(const std::vector<std::string>& lines) {
  std::string out;
  for (std::size_t i = 0; i < lines.size() && i < 8; ++i) out += lines[i] + "\n";
  return out;
}

// Runs the seeds; the first that breaks a law fails the test and names itself.
template <class Check>
void each_seed(WorldOptions options, std::uint64_t seeds, Check check) {
  const SeedChoice choice = seed_choice();
  for (std::uint64_t i = 1; i <= seeds; ++i) {
    options.seed = choice.only.value_or(i);
    World world{options};
    const auto findings = world.run();
    INFO("replay with --seed=", options.seed);
    INFO(join(findings));
    REQUIRE(findings.empty());
    check(world);
    if (choice.only) return;
  }
}

void laws_hold(const WorldOptions& options) {
  each_seed(options, seed_choice().count, [](const World&) {});
}

// How many seeds it takes until the oracle speaks; 0: it never did.
std::uint64_t caught_after(WorldOptions options) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    options.seed = seed;
    World world{options};
    if (!world.run().empty() || (options.faults == Faults::off && world.duplicates() > 0)) return seed;
  }
  return 0;
}

}  // namespace

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
