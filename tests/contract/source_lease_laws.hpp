#pragma once
// The laws of leases, pins and the asleep flag. Part of source_contract.hpp.

#include "tests/contract/source_contract.hpp"

namespace outbox::test {

inline std::string lanes_of(const relay::LeaseReply& reply) {
  std::set<std::int16_t> lanes;
  for (const relay::Lease& held : reply.held) lanes.insert(held.lane.value);
  std::string out;
  for (const std::int16_t lane : lanes) out += std::to_string(lane);
  return out;
}

template <class World>
void give_back(World& world, const std::string& owner, std::vector<relay::Lease> lanes,
               relay::Leaving leaving = relay::Leaving::no) {
  asked<void>(
      world, [&](auto done) { world.source().give_back(owner, std::move(lanes), leaving, std::move(done)); });
}

// What the owner has beyond its share, as a relay gives it back: the last lanes.
inline std::vector<relay::Lease> surplus(const relay::LeaseReply& reply) {
  std::vector<relay::Lease> held = reply.held;
  std::sort(held.begin(), held.end(), [](const auto& a, const auto& b) { return a.lane < b.lane; });
  return {held.begin() + reply.share, held.end()};
}

TEST_CASE_TEMPLATE_DEFINE("the first to ask gets every lane, and renewing keeps the epochs", World,
                          source_lease) {
  World world;
  const auto first = lease(world, "me");
  REQUIRE(first.held.size() == 8);
  CHECK(first.lanes == 8);
  CHECK(first.share == 8);
  CHECK(first.instances == 1);
  CHECK_FALSE(first.other_ends.has_value());
  const auto again = lease(world, "me");
  REQUIRE(again.held.size() == 8);
  for (std::int16_t shard = 0; shard < 8; ++shard) {
    CHECK(lease_of(first, relay::Shard{shard}).epoch == lease_of(again, relay::Shard{shard}).epoch);
  }
}

TEST_CASE_TEMPLATE_DEFINE("a silent owner's lanes are free when its lease has run out, under higher epochs",
                          World, source_lease_waits) {
  World world;
  const auto mine = lease(world, "me", Millis{500});
  const auto refused = lease(world, "other", Millis{60'000});
  REQUIRE(refused.held.empty());
  CHECK(refused.other_owner == "me");
  REQUIRE(refused.other_ends.has_value());
  CHECK(*refused.other_ends <= Millis{500});
  relay::LeaseReply taken;
  for (int n = 0; n < 1000 && taken.held.empty(); ++n) {
    world.pass(Millis{10});
    taken = lease(world, "other", Millis{60'000});
  }
  REQUIRE(taken.held.size() == 8);
  for (std::int16_t shard = 0; shard < 8; ++shard) {
    CHECK(lease_of(mine, relay::Shard{shard}).epoch < lease_of(taken, relay::Shard{shard}).epoch);
  }
  const auto late = lease(world, "me");
  CHECK(late.held.empty());
  CHECK(late.other_owner == "other");
}

TEST_CASE_TEMPLATE_DEFINE(
    "lanes are shared evenly, the oldest have one more, and nothing is taken from anybody", World,
    source_lease_shares) {
  World world;
  lease(world, "a");
  CHECK(lease(world, "b").share == 4);
  CHECK(lease(world, "b").held.empty());
  auto a = lease(world, "a");
  CHECK(a.share == 4);
  CHECK(a.held.size() == 8);
  CHECK(lease(world, "c").share == 2);
  give_back(world, "a", surplus(lease(world, "a")));
  CHECK(lanes_of(lease(world, "b")) == "345");
  CHECK(lanes_of(lease(world, "c")) == "67");
  CHECK(lanes_of(lease(world, "a")) == "012");
  CHECK(lease(world, "a").instances == 3);
  for (const char* name : {"d", "e", "f", "g", "h", "i"}) lease(world, name);
  CHECK(lease(world, "a").share == 1);
  CHECK(lease(world, "h").share == 1);
  CHECK(lease(world, "i").share == 0);
}

TEST_CASE_TEMPLATE_DEFINE("lanes given back are free at once, and only their owner can give them back", World,
                          source_give_back) {
  World world;
  const auto mine = lease(world, "me");
  lease(world, "other");
  give_back(world, "somebody", mine.held);
  CHECK(lease(world, "other").held.empty());
  give_back(world, "me", {mine.held.front()});
  const auto others = lease(world, "other");
  REQUIRE(others.held.size() == 1);
  CHECK(others.held.front().lane == mine.held.front().lane);
  CHECK(others.held.front().epoch > mine.held.front().epoch);
}

TEST_CASE_TEMPLATE_DEFINE("a give-back that comes late, after the lane came back, changes nothing", World,
                          source_give_back_late) {
  World world;
  const auto before = lease(world, "me");
  give_back(world, "me", before.held);
  const auto after = lease(world, "me");
  REQUIRE(after.held.size() == 8);
  give_back(world, "me", before.held);
  lease(world, "other");
  CHECK(lease(world, "other").held.empty());
  CHECK(lease(world, "me").held.size() == 8);
}

TEST_CASE_TEMPLATE_DEFINE("who leaves gives back all it has, and the others' shares rise at once", World,
                          source_leave) {
  World world;
  lease(world, "a");
  lease(world, "b");
  give_back(world, "a", {}, relay::Leaving::yes);
  const auto b = lease(world, "b");
  CHECK(b.held.size() == 8);
  CHECK(b.instances == 1);
}

TEST_CASE_TEMPLATE_DEFINE(
    "another count of lanes begins when nobody has a lane, under epochs above all earlier", World,
    source_lanes_dealt_anew) {
  World world;
  const auto lease_of_count = [&](const std::string& owner, std::int16_t lanes) {
    return asked<relay::LeaseReply>(world, [&](auto done) {
      world.source().lease({.owner = owner, .lanes = lanes, .ttl = Millis{60'000}}, std::move(done));
    });
  };
  lease_of_count("a", 8);
  auto b = lease_of_count("b", 16);  // the youngest one's wish
  CHECK(b.lanes == 8);
  CHECK(b.share == 0);
  CHECK(b.held.empty());
  auto a = lease_of_count("a", 8);
  CHECK(a.share == 0);
  CHECK(a.held.size() == 8);
  give_back(world, "a", a.held);
  b = lease_of_count("b", 16);
  CHECK(b.lanes == 16);
  CHECK(b.held.size() == 8);
  for (const relay::Lease& l : b.held) CHECK(l.epoch.value == 3);
  const auto again = lease_of_count("a", 8);
  CHECK(again.lanes == 16);
  CHECK(again.held.size() == 8);
}

TEST_CASE_TEMPLATE_DEFINE(
    "two ways of delivery are never at work at once: who delivers otherwise waits for the last lane", World,
    source_delivery) {
  World world;
  const auto lease_as = [&](const std::string& owner, std::string_view delivery, std::int16_t lanes = 8) {
    return asked<relay::LeaseReply>(world, [&](auto done) {
      world.source().lease(
          {.owner = owner, .lanes = lanes, .ttl = Millis{60'000}, .delivery = std::string{delivery}},
          std::move(done));
    });
  };
  const auto once = [&](const std::string& owner, std::int16_t lanes = 8) {
    return lease_as(owner, relay::exactly_once, lanes);
  };
  const auto least = [&](const std::string& owner) { return lease_as(owner, relay::at_least_once); };
  CHECK_FALSE(least("a").differs.has_value());
  auto b = once("b", 16);
  REQUIRE(b.differs.has_value());
  CHECK(b.differs->delivery == relay::at_least_once);
  CHECK(b.differs->instance == "a");
  CHECK(b.share == 0);
  CHECK(b.held.empty());
  CHECK(b.instances == 2);
  auto a = least("a");  // the other one's share and its count of lanes are of no account
  CHECK(a.share == 8);
  CHECK(a.lanes == 8);
  // A younger one of the same delivery shares, and goes on when the oldest is gone: it has lanes.
  CHECK(least("c").share == 4);
  give_back(world, "a", surplus(least("a")));
  CHECK(least("c").held.size() == 4);
  give_back(world, "a", {}, relay::Leaving::yes);
  b = once("b", 16);
  REQUIRE(b.differs.has_value());
  CHECK(b.differs->instance == "c");
  CHECK(b.held.empty());
  CHECK(least("c").held.size() == 8);
  give_back(world, "c", {}, relay::Leaving::yes);
  b = once("b", 16);
  CHECK_FALSE(b.differs.has_value());
  CHECK(b.lanes == 16);
  CHECK(b.held.size() == 16);
  const auto back = least("a");
  REQUIRE(back.differs.has_value());
  CHECK(back.differs->delivery == relay::exactly_once);
  CHECK(back.held.empty());
}

TEST_CASE_TEMPLATE_DEFINE(
    "every owner hears with its lease that an operator has paused the pipeline, and why", World,
    source_paused) {
  World world;
  CHECK_FALSE(lease(world, "a").paused.has_value());
  world.pause("the bank's holiday");
  for (const char* owner : {"a", "b"}) {
    const auto paused = lease(world, owner).paused.value_or("");
    CHECK_MESSAGE(paused.find("the bank's holiday") != std::string::npos, paused);
  }
  world.pause(std::nullopt);
  CHECK_FALSE(lease(world, "b").paused.has_value());
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
