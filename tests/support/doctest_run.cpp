// doctest's own handlers would tell no more than the test case, and in the midst of a broken heap with
// streams.
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "tests/support/crash_trace.hpp"
#include "tests/support/doctest_main.hpp"

namespace outbox::test {
namespace {

const char* test_case() noexcept {
  const auto* options = doctest::getContextOptions();
  const auto* now = options != nullptr ? options->currentTest : nullptr;
  return now != nullptr ? now->m_name : nullptr;
}

}  // namespace

int run_doctest(int argc, char** argv) {
  trace_crashes(test_case);
  return doctest::Context(argc, argv).run();
}

}  // namespace outbox::test
