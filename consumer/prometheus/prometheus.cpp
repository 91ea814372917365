#include "outbox/prometheus.hpp"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>
#include <utility>

namespace outbox {
namespace {

const prometheus::Histogram::BucketBoundaries seconds_buckets{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                              0.25,  0.5,    1,     2.5,  5,     10,   30};
const prometheus::Histogram::BucketBoundaries rows_buckets{1,   2,   5,   10,   20,   50,
                                                           100, 200, 500, 1000, 5000, 10000};

const MetricRow& row_of(Metric metric) {
  return metric_rows.at(static_cast<std::size_t>(metric));
}

}  // namespace

struct PrometheusMetrics::State {
  State(prometheus::Registry& r, std::string n) : registry(r), name(std::move(n)) {
    for (const auto& row : metric_rows) {
      const std::string title(row.name), help(row.help);
      if (row.kind == MetricKind::counter)
        counters.emplace(row.metric, &prometheus::BuildCounter().Name(title).Help(help).Register(registry));
      else if (row.kind == MetricKind::gauge)
        gauges.emplace(row.metric, &prometheus::BuildGauge().Name(title).Help(help).Register(registry));
      else
        histograms.emplace(row.metric,
                           &prometheus::BuildHistogram().Name(title).Help(help).Register(registry));
    }
  }

  [[nodiscard]] prometheus::Labels labels(Metric metric, std::string_view label) const {
    prometheus::Labels out{{"consumer", name}};
    const auto& row = row_of(metric);
    if (row.metric == Metric::lag) {
      const auto dash = label.rfind('-');
      out["topic"] = label.substr(0, dash);
      out["partition"] = label.substr(dash + 1);
    } else if (!row.label.empty()) {
      out[std::string(row.label)] = label;
    }
    return out;
  }

  prometheus::Registry& registry;
  std::string name;
  std::map<Metric, prometheus::Family<prometheus::Counter>*> counters;
  std::map<Metric, prometheus::Family<prometheus::Gauge>*> gauges;
  std::map<Metric, prometheus::Family<prometheus::Histogram>*> histograms;
};

PrometheusMetrics::PrometheusMetrics(prometheus::Registry& registry, const std::string& name)
    : state_(std::make_unique<State>(registry, name)) {}
PrometheusMetrics::~PrometheusMetrics() = default;

void PrometheusMetrics::record(Metric metric, std::string_view label, double value) noexcept {
  const auto labels = state_->labels(metric, label);
  switch (row_of(metric).kind) {
    case MetricKind::counter:
      return state_->counters.at(metric)->Add(labels).Increment(value);
    case MetricKind::gauge:
      return state_->gauges.at(metric)->Add(labels).Set(value);
    case MetricKind::histogram:
      return state_->histograms.at(metric)
          ->Add(labels, metric == Metric::batch_rows ? rows_buckets : seconds_buckets)
          .Observe(value);
  }
}

void PrometheusMetrics::forget(Metric metric, std::string_view label) noexcept {
  const auto family = state_->gauges.find(metric);
  if (family == state_->gauges.end()) return;
  family->second->Remove(&family->second->Add(state_->labels(metric, label)));
}

}  // namespace outbox
