#pragma once
// An even pace for work that is numbered from 1: item n is due n / rate after the start.

#include <chrono>
#include <cstdint>
#include <thread>

namespace demo {

class Pace {
 public:
  /// rate: items a second; 0: as fast as it goes.
  explicit Pace(int rate) : rate_(rate), start_(std::chrono::steady_clock::now()) {}

  /// Blocks until item n is due. Any thread.
  void await(std::int64_t n) const {
    if (rate_ > 0) std::this_thread::sleep_until(start_ + std::chrono::microseconds(n * 1'000'000 / rate_));
  }

 private:
  int rate_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace demo
