// What the loop tells outbox::Metrics.

#include <algorithm>
#include <map>
#include <string>

#include "consumer/loop/consumer_loop.hpp"

namespace outbox {
namespace {

constexpr Millis lag_interval{1000};

std::string_view word(const Outcome& outcome) {
  if (outcome.fenced) return "fenced";
  if (outcome.fate == Fate::dead && outcome.verdict == Verdict::fresh) return "dead";
  if (outcome.fate == Fate::applied || outcome.fate == Fate::parked || !outcome.settled())
    return to_string(outcome.fate);
  return to_string(outcome.verdict);
}

}  // namespace

void ConsumerLoop::measure(std::span<const Outcome> outcomes, MonoTime start) {
  if (!options_.metrics) return;
  std::map<std::string_view, int> settled, again;
  for (const auto& outcome : outcomes) ++(outcome.settled() ? settled : again)[word(outcome)];
  for (const auto& [label, count] : settled) options_.metrics->record(Metric::messages, label, count);
  for (const auto& [label, count] : again) options_.metrics->record(Metric::retries, label, count);
  options_.metrics->record(Metric::batch_rows, "", static_cast<double>(outcomes.size()));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  options_.metrics->record(Metric::batch_seconds, "", took.count());
}

void ConsumerLoop::measure_revived(std::span<const Outcome> outcomes) {
  if (!options_.metrics) return;
  for (const auto& outcome : outcomes) options_.metrics->record(Metric::revived, word(outcome), 1);
}

void ConsumerLoop::measure_lag() {
  const MonoTime now = std::chrono::steady_clock::now();
  if (!options_.metrics || now < lag_due_) return;
  lag_due_ = now + lag_interval;
  std::vector<NextOffset> positions;
  {
    const std::lock_guard lock(mutex_);
    positions = backlog_.positions();
  }
  for (const auto& [id, next] : positions)
    if (const auto end = subscription_.end_of(id))
      options_.metrics->record(Metric::lag, to_string(id),
                               static_cast<double>(std::max<std::int64_t>(0, *end - next)));
}

void ConsumerLoop::forget_lag(std::span<const PartitionId> partitions) {
  if (!options_.metrics) return;
  for (const auto& id : partitions) options_.metrics->forget(Metric::lag, to_string(id));
}

}  // namespace outbox
