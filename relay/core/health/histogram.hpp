#pragma once
// How long something took, counted in buckets that double. Plain numbers that their owner's thread writes and
// a scrape on the same thread reads: an observation costs a shift and two additions. Pure.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "base/clock.hpp"

namespace outbox::relay {

class Histogram {
 public:
  static constexpr Micros first_bound{250};
  static constexpr std::size_t bounds =
      19;  ///< 250 µs, 500 µs, … 65.536 s; what is longer has its own bucket
  using Counts = std::array<std::uint64_t, bounds + 1>;

  [[nodiscard]] static constexpr Micros bound(std::size_t bucket) { return first_bound * (1LL << bucket); }

  /// Below zero (two clocks differ) counts as zero.
  void observe(Micros took) {
    const auto us = took.count() > 0 ? static_cast<std::uint64_t>(took.count()) : 0;
    const auto steps = us == 0 ? 0 : (us - 1) / static_cast<std::uint64_t>(first_bound.count());
    counts_[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(steps)), bounds)] += 1;
    sum_us_ += us;
  }

  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] std::uint64_t count() const;
  [[nodiscard]] Micros sum() const { return Micros{static_cast<std::int64_t>(sum_us_)}; }
  /// What was observed since `before`, an earlier copy of this one.
  [[nodiscard]] Histogram since(const Histogram& before) const;
  /// Shape: the time that `share` (0..1) of the observations did not exceed, interpolated inside its bucket;
  /// zero without observations; the last bound for what lies beyond it.
  [[nodiscard]] Micros quantile(double share) const;

 private:
  Counts counts_{};
  std::uint64_t sum_us_ = 0;
};

}  // namespace outbox::relay
