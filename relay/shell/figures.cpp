#include "relay/shell/figures.hpp"

#include <algorithm>

#include "relay/shell/pipeline.hpp"

namespace outbox::relay {
namespace {

TopicFigures figures_of(const Topic& topic, MonoTime now) {
  return {.name = topic.name,
          .state = to_string(topic.state),
          .counters = topic.counters,
          .partitions = topic.partitions,
          .waiting = std::ssize(topic.waiting),
          .in_flight = topic.in_flight,
          .partitions_away = topic.stalled_partitions.away_count(),
          .held = topic.held,
          .careful = now < topic.careful_until};
}

// What is told of the others together must be all of them.
TopicFigures merged(std::span<const TopicFigures> topics, const TopicCounters& forgotten) {
  TopicFigures out{.name = other_topics, .state = "", .counters = forgotten};
  for (const TopicFigures& t : topics) {
    out.counters.published += t.counters.published;
    out.counters.acked += t.counters.acked;
    out.counters.dead += t.counters.dead;
    out.waiting += t.waiting;
    out.in_flight += t.in_flight;
    out.partitions_away += t.partitions_away;
    out.held = out.held || t.held;
    out.careful = out.careful || t.careful;
  }
  return out;
}

}  // namespace

Judgement Pipeline::judgement() const {
  Health health = bench_.health;
  health.working = phase_ == Phase::working && health.paused.empty();
  if (transactions_) health.stopped = transactions_->longest_stopped(bench_.loop.now());
  return judge(
      health, bench_.loop.now(),
      {.look_every = bench_.options.limits.poll_interval, .lease_every = bench_.options.lease_ttl / 3});
}

Figures Pipeline::figures(std::size_t topics_max) const {
  const MonoTime now = bench_.loop.now();
  Figures out{.phase = to_string(phase_),
              .counters = bench_.counters,
              .timings = &bench_.timings,
              .health = bench_.health,
              .judgement = judgement(),
              .flight_rows = bench_.flight.rows(),
              .flight_bytes = bench_.flight.bytes(),
              .asleep = bench_.plan.asleep(),
              .transactional = transactions_ != nullptr};
  if (transactions_) out.stopped = transactions_->stopped(now);
  for (const auto& lease : leases_.leases())
    if (lease) out.lanes.push_back(*lease);
  if (leases_.active()) out.lease_left = std::chrono::duration_cast<Millis>(leases_.ends_at() - now);
  for (const auto& topic : topics_.all())
    if (topic) out.topics.push_back(figures_of(*topic, now));
  const std::size_t shown = std::min(topics_max, out.topics.size());
  if (out.topics.size() > shown || topics_.forgotten().published > 0) {
    // By number, which is the order of their first row: a series that was shown once is shown always.
    const auto rest = merged(std::span{out.topics}.subspan(shown), topics_.forgotten());
    out.topics.resize(shown);
    out.topics.push_back(rest);
  }
  return out;
}

}  // namespace outbox::relay
