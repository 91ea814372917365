#include "relay/core/health/histogram.hpp"

#include <numeric>

namespace outbox::relay {

std::uint64_t Histogram::count() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

Histogram Histogram::since(const Histogram& before) const {
  Histogram out;
  for (std::size_t i = 0; i < counts_.size(); ++i) out.counts_[i] = counts_[i] - before.counts_[i];
  out.sum_us_ = sum_us_ - before.sum_us_;
  return out;
}

Micros Histogram::quantile(double share) const {
  const auto wanted = static_cast<double>(count()) * share;
  double below = 0;
  for (std::size_t i = 0; i < bounds && wanted > 0; ++i) {
    const auto here = static_cast<double>(counts_[i]);
    if (below + here >= wanted) {
      const auto low = i == 0 ? 0.0 : static_cast<double>(bound(i - 1).count());
      const auto high = static_cast<double>(bound(i).count());
      return Micros{static_cast<std::int64_t>(low + (high - low) * (wanted - below) / here)};
    }
    below += here;
  }
  return wanted > 0 ? bound(bounds - 1) : Micros{0};
}

}  // namespace outbox::relay
