#include "relay/metrics/exposition.hpp"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
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

constexpr std::string_view openmetrics_type = "application/openmetrics-text";
constexpr std::string_view total = "_total";

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

// Splits at `at`, once; `rest` loses what is returned.
std::string_view next_part(std::string_view& rest, char at) {
  const auto end = rest.find(at);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return trimmed(part);
}

// 0 to 1; what can't be read is 0.
double weight_of(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view parameter = next_part(parameters, ';');
    if (!parameter.starts_with("q=") && !parameter.starts_with("Q=")) continue;
    double out = 0;
    const auto number = parameter.substr(2);
    const auto error = std::from_chars(number.data(), number.data() + number.size(), out).ec;
    return error == std::errc{} && out >= 0 && out <= 1 ? out : 0;
  }
  return 1;
}

// OpenMetrics names a counter without the ending that its sample has.
std::string as_openmetrics(const std::string& text) {
  std::string out;
  std::string_view rest{text};
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size() - 1);
    std::string_view line = rest.substr(0, end + 1);
    rest.remove_prefix(end + 1);
    if (line.starts_with("# ")) {
      const auto name_end = line.find(' ', line.find(' ', 2) + 1);
      if (line.substr(0, name_end).ends_with(total)) {
        out.append(line.substr(0, name_end - total.size()));
        line.remove_prefix(name_end);
      }
    }
    out.append(line);
  }
  return out + "# EOF\n";
}

}  // namespace

ExpositionFormat format_accepted(std::string_view accept) {
  double openmetrics = 0;
  std::optional<double> plain;
  while (!accept.empty()) {
    std::string_view parameters = next_part(accept, ',');
    const std::string_view type = next_part(parameters, ';');
    const double weight = weight_of(parameters);
    if (type == openmetrics_type) openmetrics = std::max(openmetrics, weight);
    if (type == "text/plain") plain = std::max(plain.value_or(0), weight);
  }
  return openmetrics > 0 && openmetrics >= plain.value_or(0) ? ExpositionFormat::openmetrics
                                                             : ExpositionFormat::prometheus;
}

std::string_view content_type(ExpositionFormat format) {
  return format == ExpositionFormat::openmetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

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

std::string Exposition::text(ExpositionFormat format) const {
  std::vector<prometheus::MetricFamily> families;
  for (std::size_t i = 0; i < metric_table.size(); ++i) {
    if (state_->samples[i].empty()) continue;
    const MetricFacts& facts = metric_table[i];
    families.push_back(
        {std::string{facts.name}, std::string{facts.help}, type_of(facts.type), state_->samples[i]});
  }
  std::ostringstream out;
  prometheus::TextSerializer{}.Serialize(out, families);
  if (format == ExpositionFormat::openmetrics) return as_openmetrics(out.str());
  return std::move(out).str();
}

}  // namespace outbox::relay
