#pragma once
// Exponential backoff with full jitter between half and all of the step, seeded by the caller, so that
// simulations repeat.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

#include "base/clock.hpp"

namespace outbox {

struct BackoffOptions {
  Millis initial{100};
  Millis max{10'000};
};

class Backoff {
 public:
  Backoff(BackoffOptions options, std::uint64_t seed)
      : options_(options),
        step_(options.initial),
        random_(static_cast<std::minstd_rand::result_type>(seed % 2'147'483'646 + 1)) {}

  /// How long to wait before the next attempt; each call doubles the step up to max.
  [[nodiscard]] Millis next() {
    const auto half = step_.count() / 2;
    const Millis wait{half + std::uniform_int_distribution<Millis::rep>(0, step_.count() - half)(random_)};
    step_ = std::min(step_ * 2, options_.max);
    return wait;
  }
  /// After a success: the next failure starts again at `initial`.
  void reset() { step_ = options_.initial; }

 private:
  BackoffOptions options_;
  Millis step_;
  std::minstd_rand random_;  // one word of state: there may be thousands of these
};

}  // namespace outbox
