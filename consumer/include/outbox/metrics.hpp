#pragma once
// What a Consumer counts and measures as it happens, for a monitoring system: one table of metrics, and a
// small interface that a service implements, or takes ready made for Prometheus (outbox/prometheus.hpp).
// Place: ConsumerOptions::metrics. Lifecycle: outlives the Consumer. Thread: called from any of the library's
// threads, several at once, between messages: it must not block for long and must not throw.

#include <array>
#include <cstdint>
#include <string_view>

namespace outbox {

enum class Metric { messages, retries, revived, batch_seconds, batch_rows, lag };

enum class MetricKind { counter, histogram, gauge };

struct MetricRow {
  Metric metric;
  MetricKind kind;
  std::string_view name;
  std::string_view label;  ///< the name of what MetricPoint::label says; empty: none
  std::string_view help;
};
/// The one list, in the order of the enum.
inline constexpr std::array metric_rows = {
    MetricRow{Metric::messages, MetricKind::counter, "outbox_consumer_messages_total", "outcome",
              "messages settled: applied, duplicate, stale, conflict, expired, malformed, parked, dead"},
    MetricRow{Metric::retries, MetricKind::counter, "outbox_consumer_retries_total", "why",
              "messages to be offered again: failed (its handler), waiting (the database, or one before it), "
              "fenced (another member has claimed the partition)"},
    MetricRow{Metric::revived, MetricKind::counter, "outbox_consumer_revived_total", "outcome",
              "dead messages that were retried, by what became of them"},
    MetricRow{Metric::batch_seconds, MetricKind::histogram, "outbox_consumer_batch_seconds", "",
              "from a batch's first statement to its commit, handlers included"},
    MetricRow{Metric::batch_rows, MetricKind::histogram, "outbox_consumer_batch_rows", "",
              "messages in a batch"},
    MetricRow{Metric::lag, MetricKind::gauge, "outbox_consumer_lag", "partition",
              "messages of a partition that are in Kafka and not yet settled here"},
};

class Metrics {
 public:
  virtual ~Metrics() = default;
  /// Shape: a counter rises by `value`, a histogram observes it, a gauge is set to it. `label` is the value
  /// of the row's label; of the lag it is "topic-partition".
  virtual void record(Metric metric, std::string_view label, double value) noexcept = 0;
  /// A partition went to another member: its gauge is nobody's any more.
  virtual void forget(Metric metric, std::string_view label) noexcept = 0;
};

}  // namespace outbox
