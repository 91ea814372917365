#pragma once
// Running a law over seeds, and a mutant until it is caught.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/sim/world.hpp"

namespace outbox::test {

inline std::string join(const std::vector<std::string>& lines) {
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

inline void laws_hold(const WorldOptions& options) {
  each_seed(options, seed_choice().count, [](const World&) {});
}

// How many seeds it takes until the oracle speaks; 0: it never did.
inline std::uint64_t caught_after(WorldOptions options) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    options.seed = seed;
    World world{options};
    if (!world.run().empty() || (options.faults == Faults::off && world.duplicates() > 0)) return seed;
  }
  return 0;
}

}  // namespace outbox::test
