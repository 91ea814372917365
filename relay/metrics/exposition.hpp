#pragma once
// One answer to a scrape, under construction: samples go in by the table's rows, Prometheus' text comes out.
// Lifecycle: made, filled, written, gone. Thread: one.

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "relay/core/health/histogram.hpp"
#include "relay/metrics/metric_table.hpp"

namespace outbox::relay {

/// Prometheus' text format 0.0.4, or OpenMetrics 1.0.0.
enum class ExpositionFormat { prometheus, openmetrics };

/// What `accept` (RFC 9110, Accept) takes: OpenMetrics where it is named and not less wanted than plain text.
[[nodiscard]] ExpositionFormat format_accepted(std::string_view accept);
[[nodiscard]] std::string_view content_type(ExpositionFormat format);

class Exposition {
 public:
  /// In the order of the metric's labels.
  using Labels = std::initializer_list<std::string_view>;

  Exposition();
  ~Exposition();
  Exposition(const Exposition&) = delete;
  Exposition& operator=(const Exposition&) = delete;

  void add(Metric metric, Labels labels, double value);
  void add(Metric metric, Labels labels, std::int64_t value) {
    add(metric, labels, static_cast<double>(value));
  }
  void add(Metric metric, Labels labels, bool value) { add(metric, labels, value ? 1.0 : 0.0); }
  void add(Metric metric, Labels labels, const Histogram& histogram);

  /// Every metric with a sample, in the table's order.
  [[nodiscard]] std::string text(ExpositionFormat format = ExpositionFormat::prometheus) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outbox::relay
