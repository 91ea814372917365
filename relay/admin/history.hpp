#pragma once
// The last minutes of one pipeline, one sample a step, for the charts of the status page. Bounded. Pure.

#include <cstdint>
#include <deque>
#include <optional>

#include "relay/core/health/histogram.hpp"

namespace outbox::relay {

struct HistorySample {
  double sent_per_s = 0;
  double p50_ms = 0;  ///< of created_to_ack, in this step
  double p99_ms = 0;
  std::int64_t pending = 0;
};

class History {
 public:
  static constexpr Millis step{2000};
  static constexpr std::size_t samples_max = 300;

  /// Once a step, with the totals so far; the first call only notes them. A call that comes late covers the
  /// whole time since the one before.
  void note(MonoTime now, std::int64_t marked, const Histogram& created_to_ack, std::int64_t pending);
  [[nodiscard]] const std::deque<HistorySample>& samples() const { return samples_; }

 private:
  std::deque<HistorySample> samples_;  // the oldest first
  std::optional<MonoTime> noted_;
  std::int64_t marked_ = 0;
  Histogram created_to_ack_;
};

}  // namespace outbox::relay
