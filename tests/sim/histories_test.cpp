// Histories that once broke a law, replayed by name: whatever else changes, these hold.

#include <doctest/doctest.h>

#include "tests/sim/seeds.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

void holds(WorldOptions options, std::uint64_t seed) {
  options.seed = seed;
  World world{options};
  INFO("seed ", seed);
  CHECK(join(world.run()) == "");
}

}  // namespace

// A partition came back, its topic was forgotten as idle, and a claim from before brought later rows.
TEST_CASE("a topic is not forgotten while a claim is under way that left out rows of it") {
  holds({.relays = 2}, 342);
  holds({.relays = 2, .waking = relay::Waking::poll, .after_sent = relay::AfterSent::erase}, 407);
  holds({.relays = 3, .members = Members::come_and_go, .lanes = Lanes::differ}, 3268);
}
