#include "relay/metrics/exposition.hpp"

#include <prometheus/text_serializer.h>

#include <array>
#include <sstream>
#include <utility>

#include "base/check.hpp"
#include "relay/log/line.hpp"
#include "relay/log/utf8.hpp"

namespace outbox::relay {
namespace {

double seconds(Micros t) {
  return std::chrono::duration<double>(t).count();
}

// The next of "pipeline,topic"; `names` loses it.
std::string next_name(std::string_view& names) {
  const auto comma = names.find(',');
  std::string name{names.substr(0, comma)};
  names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
  return name;
}

// Prometheus' text escapes quotes and line ends itself. What else could move the cursor of whoever reads it
// in a terminal, or is no UTF-8, is written as in the log.
std::string label_value(std::string_view text) {
  log::Utf8 rest{text};
  while (const auto c = rest.next())
    if (!c->valid || (c->point != U'\n' && log::unprintable(c->point))) return log::text_value(text);
  return std::string{text};
}

prometheus::MetricType type_of(MetricType type) {
  switch (type) {
    case MetricType::counter:
      return prometheus::MetricType::Counter;
    case MetricType::gauge:
      return prometheus::MetricType::Gauge;
    case MetricType::histogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

}  // namespace

struct Exposition::State {
  std::array<std::vector<prometheus::ClientMetric>, metric_table.size()> samples;

  prometheus::ClientMetric& sample(Metric metric, Labels labels) {
    auto& added = samples[static_cast<std::size_t>(metric)].emplace_back();
    std::string_view names = facts_of(metric).labels;
    for (const std::string_view value : labels) {
      OUTBOX_CHECK(!names.empty(), "a sample has no more labels than its metric");
      added.label.push_back({next_name(names), label_value(value)});
    }
    OUTBOX_CHECK(names.empty(), "a sample has every label of its metric");
    return added;
  }
};

Exposition::Exposition() : state_(std::make_unique<State>()) {}
Exposition::~Exposition() = default;

void Exposition::add(Metric metric, Labels labels, double value) {
  prometheus::ClientMetric& sample = state_->sample(metric, labels);
  OUTBOX_CHECK(facts_of(metric).type != MetricType::histogram, "a histogram's sample is a histogram");
  sample.counter.value = sample.gauge.value = value;
}

void Exposition::add(Metric metric, Labels labels, const Histogram& histogram) {
  OUTBOX_CHECK(facts_of(metric).type == MetricType::histogram, "only a histogram's sample is a histogram");
  auto& out = state_->sample(metric, labels).histogram;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < Histogram::bounds; ++i) {
    below += histogram.counts()[i];
    out.bucket.push_back({below, seconds(Histogram::bound(i))});
  }
  out.sample_count = histogram.count();
  out.sample_sum = seconds(histogram.sum());
}

std::string Exposition::text() const {
  std::vector<prometheus::MetricFamily> families;
  for (std::size_t i = 0; i < metric_table.size(); ++i) {
    if (state_->samples[i].empty()) continue;
    const MetricFacts& facts = metric_table[i];
    families.push_back(
        {std::string{facts.name}, std::string{facts.help}, type_of(facts.type), state_->samples[i]});
  }
  std::ostringstream out;
  prometheus::TextSerializer{}.Serialize(out, families);
  return std::move(out).str();
}

}  // namespace outbox::relay
