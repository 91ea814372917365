// The simulation's entry: doctest's options, and two of its own.
//   --seed=N    only this seed, in every test that runs seeds
//   --seeds=N   how many seeds a test runs
#include <cstdlib>
#include <string_view>

#include "tests/sim/world.hpp"
#include "tests/support/doctest_main.hpp"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg{argv[i]};
    if (arg.starts_with("--seed="))
      outbox::test::seed_choice().only = std::strtoull(argv[i] + 7, nullptr, 10);
    if (arg.starts_with("--seeds="))
      outbox::test::seed_choice().count = std::strtoull(argv[i] + 8, nullptr, 10);
  }
  return outbox::test::run_doctest(argc, argv);
}
