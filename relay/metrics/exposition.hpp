#pragma once
// One answer to a scrape, under construction: samples go in by the table's rows, Prometheus' text comes out.
// Lifecycle: made, filled, written, gone. Thread: one.

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "relay/core/histogram.hpp"
#include "relay/metrics/metric_table.hpp"

namespace outbox::relay {

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

  /// Every metric with a sample, in the table's order. Source: Prometheus' text format 0.0.4.
  [[nodiscard]] std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

inline constexpr std::string_view exposition_content_type = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace outbox::relay
