#pragma once
// The laws of leases, pins and the asleep flag. Part of source_contract.hpp.

#include "tests/contract/source_contract.hpp"

namespace outbox::test {

TEST_CASE_TEMPLATE_DEFINE("the first to ask gets every lane, and renewing keeps the epochs", World,
                          source_lease) {
  World world;
  const auto first = lease(world, "me");
  REQUIRE(first.held.size() == 8);
  const auto again = lease(world, "me");
  REQUIRE(again.held.size() == 8);
  for (std::int16_t shard = 0; shard < 8; ++shard) {
    CHECK(lease_of(first, relay::Shard{shard}).epoch == lease_of(again, relay::Shard{shard}).epoch);
  }
}

TEST_CASE_TEMPLATE_DEFINE("a second owner waits until the lease has run out, and then has higher epochs",
                          World, source_lease_waits) {
  World world;
  const auto mine = lease(world, "me", Millis{500});
  const auto refused = lease(world, "other", Millis{60'000});
  REQUIRE(refused.held.empty());
  CHECK(refused.other_owner == "me");
  CHECK(refused.other_remaining <= Millis{500});
  relay::LeaseReply taken;
  for (int n = 0; n < 1000 && taken.held.empty(); ++n) {
    world.pass(Millis{10});
    taken = lease(world, "other", Millis{60'000});
  }
  REQUIRE(taken.held.size() == 8);
  for (std::int16_t shard = 0; shard < 8; ++shard) {
    CHECK(lease_of(mine, relay::Shard{shard}).epoch < lease_of(taken, relay::Shard{shard}).epoch);
  }
  CHECK(lease(world, "me").other_owner == "other");
}

TEST_CASE_TEMPLATE_DEFINE("lanes given back are free at once, and only their owner can give them back", World,
                          source_give_back) {
  World world;
  const auto mine = lease(world, "me");
  asked<void>(world, [&](auto done) { world.source().give_back("somebody", std::move(done)); });
  CHECK(lease(world, "other").held.empty());
  asked<void>(world, [&](auto done) { world.source().give_back("me", std::move(done)); });
  const auto others = lease(world, "other");
  REQUIRE(others.held.size() == 8);
  CHECK(lease_of(mine, relay::Shard{0}).epoch < lease_of(others, relay::Shard{0}).epoch);
}

TEST_CASE_TEMPLATE_DEFINE("the first pinned partition count of a topic stays until it is replaced", World,
                          source_pin) {
  World world;
  CHECK(pin(world, "payment.created", 6) == 6);
  CHECK(pin(world, "payment.created", 12) == 6);
  CHECK(pin(world, "other", 3) == 3);
  asked<void>(world, [&](auto done) { world.source().repin("payment.created", 12, std::move(done)); });
  CHECK(pin(world, "payment.created", 24) == 12);
  CHECK(pin(world, "other", 9) == 3);
}

TEST_CASE_TEMPLATE_DEFINE("a relay can declare itself asleep and awake", World, source_asleep) {
  World world;
  for (const Millis how_long : {Millis{1000}, Millis{0}, Millis{0}}) {
    asked<void>(world, [&](auto done) { world.source().declare_asleep(how_long, std::move(done)); });
  }
}

TEST_CASE_TEMPLATE_DEFINE("after stop() nothing is answered", World, source_stop) {
  World world;
  bool answered = false;
  world.source().claim(request_for(relay::Look::flat), [&](const auto&) { answered = true; });
  world.source().stop();
  world.pass(Millis{50});
  CHECK_FALSE(answered);
}

}  // namespace outbox::test
