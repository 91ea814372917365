#include "tests/support/eventually.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>

namespace outbox::test {

bool happens_within(Millis deadline, const std::function<bool()>& condition) {
  const MonoTime end = std::chrono::steady_clock::now() + deadline;
  for (Millis pause{1};; pause = std::min(pause * 2, Millis{25})) {
    const bool last = std::chrono::steady_clock::now() >= end;
    if (condition()) return true;
    if (last) return false;
    std::this_thread::sleep_for(pause);
  }
}

void eventually(std::string_view what, const std::function<bool()>& condition, Millis deadline) {
  if (happens_within(deadline, condition)) return;
  throw std::runtime_error(std::string(what) + ": did not happen within " + std::to_string(deadline.count()) +
                           " ms");
}

}  // namespace outbox::test
