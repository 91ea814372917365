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

std::string sentence(const Signs::Stopped& stopped, MonoTime now) {
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

Judgement judge(const Signs& signs, MonoTime now, const Patience& patience) {
  const auto over = [&](MonoTime since, Millis limit) { return now - since > limit; };
  if (signs.stopping) return {Verdict::stopping, "stopping"};
  const bool answered = signs.lease_answered > signs.started;
  if (signs.postgres_down && (!answered || over(*signs.postgres_down, patience.limit))) {
    return {Verdict::waiting,
            "PostgreSQL is away for " + for_seconds(*signs.postgres_down, now) + why(signs.postgres_error)};
  }
  if (!answered && !over(signs.started, patience.limit)) {
    return {Verdict::waiting, "starting: PostgreSQL has not answered yet"};
  }
  if (signs.kafka_down && over(*signs.kafka_down, patience.limit)) {
    return {Verdict::waiting,
            "Kafka is away for " + for_seconds(*signs.kafka_down, now) + why(signs.kafka_error)};
  }
  const MonoTime asked = std::max(signs.lease_answered, signs.started);
  if (over(asked, patience.limit + patience.lease_every)) {
    return {Verdict::stuck, "no lease was answered for " + for_seconds(asked, now)};
  }
  if (!signs.differs.empty()) return {Verdict::waiting, signs.differs};
  // Kafka is waited for. A call that never comes back is its client's own fault, and a restart mends that.
  if (signs.stopped && over(signs.stopped->since, patience.limit))
    return {signs.stopped->answered ? Verdict::waiting : Verdict::stuck, sentence(*signs.stopped, now)};
  if (signs.aside_full)
    return {Verdict::waiting, std::to_string(signs.partitions_away) +
                                  " partitions of Kafka do not answer, and " +
                                  std::to_string(signs.rows_aside) +
                                  " rows wait for them: no more can be set aside, so others wait as well"};
  if (signs.partitions_away > 0 && signs.owing && over(*signs.owing, patience.limit)) {
    return {Verdict::waiting, std::to_string(signs.partitions_away) +
                                  " partitions of Kafka do not answer, for " +
                                  for_seconds(*signs.owing, now)};
  }
  if (signs.owing && !signs.stopped && over(*signs.owing, patience.limit)) {
    return {Verdict::stuck, "rows are in flight, and none was settled for " + for_seconds(*signs.owing, now)};
  }
  if (signs.draining && over(*signs.draining, patience.limit)) {
    return {Verdict::stuck, "draining for " + for_seconds(*signs.draining, now)};
  }
  const MonoTime looked = std::max(signs.look_answered, signs.started);
  if (signs.working && !signs.owing && over(looked, patience.limit + 4 * patience.look_every)) {
    return {Verdict::stuck, "no look at the table was answered for " + for_seconds(looked, now)};
  }
  if (!signs.paused.empty()) return {Verdict::paused, signs.paused};
  return {};
}

}  // namespace outbox::relay
