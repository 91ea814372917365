#pragma once
// A doctest program's run: tests/support/doctest_main.cpp is the main() of those that have no options of
// their own, and the others call it.

namespace outbox::test {

/// doctest's run with these arguments; its answer is the program's. A crash is told of (crash_trace.hpp).
[[nodiscard]] int run_doctest(int argc, char** argv);

}  // namespace outbox::test
