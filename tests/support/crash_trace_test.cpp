// Run by ctest alone, which looks at what it prints as it dies.

#include <doctest/doctest.h>

#include <csignal>
#include <thread>

namespace outbox::test {

// Has a name in the stack: it is not in a namespace without one, and goes on behind the call.
[[gnu::noinline]] int break_down(int signal) {
  return std::raise(signal) + 1;
}

}  // namespace outbox::test

TEST_CASE("an abort on another thread is told") {
  std::thread(outbox::test::break_down, SIGABRT).join();
}
