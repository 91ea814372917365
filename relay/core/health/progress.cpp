#include "relay/core/health/progress.hpp"

#include <algorithm>

#include "relay/core/message/text.hpp"

namespace outbox::relay {
namespace {

constexpr std::size_t why_bytes_max = 400;

std::string for_seconds(MonoTime since, MonoTime now) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now - since).count()) + " s";
}

std::string why(const std::string& error) {
  return error.empty() ? "" : ": " + error;
}

}  // namespace

std::string sentence(const Health::Stopped& stopped, MonoTime now) {
  std::string out =
      "lane " + std::to_string(stopped.lane) + " has sent nothing for " + for_seconds(stopped.since, now);
  if (stopped.lanes > 1) out += " (stopped too: " + std::to_string(stopped.lanes - 1) + ")";
  return out + why(bounded_text(stopped.why, why_bytes_max));
}

std::string_view to_string(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::ready:
      return "ready";
    case Verdict::paused:
      return "paused";
    case Verdict::waiting:
      return "waiting";
    case Verdict::stuck:
      return "stuck";
    case Verdict::stopping:
      return "stopping";
  }
  return "unknown";
}

Judgement judge(const Health& health, MonoTime now, const Patience& patience) {
  const auto over = [&](MonoTime since, Millis limit) { return now - since > limit; };
  if (health.stopping) return {Verdict::stopping, "stopping"};
  const bool answered = health.lease_answered > health.started;
  if (health.postgres_down && (!answered || over(*health.postgres_down, patience.limit))) {
    return {Verdict::waiting,
            "PostgreSQL is away for " + for_seconds(*health.postgres_down, now) + why(health.postgres_error)};
  }
  if (!answered && !over(health.started, patience.limit)) {
    return {Verdict::waiting, "starting: PostgreSQL has not answered yet"};
  }
  if (health.kafka_down && over(*health.kafka_down, patience.limit)) {
    return {Verdict::waiting,
            "Kafka is away for " + for_seconds(*health.kafka_down, now) + why(health.kafka_error)};
  }
  const MonoTime asked = std::max(health.lease_answered, health.started);
  if (over(asked, patience.limit + patience.lease_every)) {
    return {Verdict::stuck, "no lease was answered for " + for_seconds(asked, now)};
  }
  if (!health.differs.empty()) return {Verdict::waiting, health.differs};
  // Kafka is waited for. A call that never comes back is its client's own fault, and a restart mends that.
  if (health.stopped && over(health.stopped->since, patience.limit))
    return {health.stopped->answered ? Verdict::waiting : Verdict::stuck, sentence(*health.stopped, now)};
  if (health.deferred_full)
    return {Verdict::waiting, std::to_string(health.partitions_away) +
                                  " partitions of Kafka do not answer, and " +
                                  std::to_string(health.rows_deferred) +
                                  " rows wait for them: no more can be set aside, so others wait as well"};
  if (health.partitions_away > 0 && health.owing && over(*health.owing, patience.limit)) {
    return {Verdict::waiting, std::to_string(health.partitions_away) +
                                  " partitions of Kafka do not answer, for " +
                                  for_seconds(*health.owing, now)};
  }
  if (health.owing && !health.stopped && over(*health.owing, patience.limit)) {
    return {Verdict::stuck,
            "rows are in flight, and none was settled for " + for_seconds(*health.owing, now)};
  }
  if (health.draining && over(*health.draining, patience.limit)) {
    return {Verdict::stuck, "draining for " + for_seconds(*health.draining, now)};
  }
  const MonoTime looked = std::max(health.look_answered, health.started);
  if (health.working && !health.owing && over(looked, patience.limit + 4 * patience.look_every)) {
    return {Verdict::stuck, "no look at the table was answered for " + for_seconds(looked, now)};
  }
  if (!health.paused.empty()) return {Verdict::paused, health.paused};
  return {};
}

}  // namespace outbox::relay
