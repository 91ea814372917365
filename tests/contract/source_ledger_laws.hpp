#pragma once
// The laws of the ledger's generations. Part of source_contract.hpp.

#include "tests/contract/source_lease_laws.hpp"

namespace outbox::test {

template <class World>
relay::LedgerStanding join_ledger(World& world) {
  return asked<relay::LedgerStanding>(world, [&](auto done) { world.source().join_ledger(std::move(done)); });
}

template <class World>
void settle_ledger(World& world, const std::vector<relay::LaneGeneration>& settled, relay::Lease lease) {
  asked<void>(world, [&](auto done) { world.source().settle_ledger(settled, lease, std::move(done)); });
}

inline std::string told(const relay::LedgerStanding& standing) {
  const auto one = [](const relay::LaneGeneration& g) {
    return std::to_string(g.number) + " of " + std::to_string(g.lanes);
  };
  std::string out = one(standing.present);
  for (const relay::LaneGeneration& g : standing.older) out += ", before it " + one(g);
  return out;
}

TEST_CASE_TEMPLATE_DEFINE("another count of lanes leaves the old ledger to be settled, by who has a lane",
                          World, source_ledger) {
  World world;
  const auto first = lease(world, "me");
  const auto standing = join_ledger(world);
  CHECK(told(standing) == "1 of 8");
  CHECK(told(join_ledger(world)) == "1 of 8");
  give_back(world, "me", {}, relay::Leaving::yes);
  const auto again = asked<relay::LeaseReply>(world, [&](auto done) {
    world.source().lease({.owner = "me again", .lanes = 4, .ttl = Millis{60'000}}, std::move(done));
  });
  REQUIRE(again.held.size() == 4);
  const auto changed = join_ledger(world);
  CHECK(told(changed) == "2 of 4, before it 1 of 8");
  CHECK(changed.ledger == standing.ledger);
  settle_ledger(world, changed.older, first.held.front());
  CHECK(told(join_ledger(world)) == "2 of 4, before it 1 of 8");
  settle_ledger(world, changed.older, again.held.front());
  CHECK(told(join_ledger(world)) == "2 of 4");
  settle_ledger(world, {changed.present}, again.held.front());
  CHECK(told(join_ledger(world)) == "2 of 4");
}

}  // namespace outbox::test
