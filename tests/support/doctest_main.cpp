#include "tests/support/doctest_main.hpp"

int main(int argc, char** argv) {
  return outbox::test::run_doctest(argc, argv);
}
