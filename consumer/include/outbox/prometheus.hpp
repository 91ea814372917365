#pragma once
// Metrics for Prometheus, in a registry of the service's own (prometheus-cpp core), which it exposes as it
// does its other metrics. A target of its own, outbox::prometheus, so that a service that does not use it
// needs no prometheus-cpp. Lifecycle: lives as long as the Consumer; the registry outlives it. Any thread.

#include <memory>
#include <string>

#include "outbox/metrics.hpp"

namespace prometheus {
class Registry;
}

namespace outbox {

class PrometheusMetrics final : public Metrics {
 public:
  /// Every series carries the label consumer="name".
  PrometheusMetrics(prometheus::Registry& registry, const std::string& name);
  ~PrometheusMetrics() override;

  void record(Metric metric, std::string_view label, double value) noexcept override;
  void forget(Metric metric, std::string_view label) noexcept override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outbox
