// What a pipeline notes of its servers, its looks, its operators and the other instances, for the judgement
// whether it makes progress, and what it tells the others of itself.

#include <chrono>
#include <utility>

#include "relay/shell/pipeline.hpp"

namespace outbox::relay {

// Claiming stops; what was claimed before is sent and marked, and the lanes are kept.
void Pipeline::note_paused(std::string reason) {
  const bool was = paused();
  bench_.health.paused = std::move(reason);
  if (was == paused()) return;
  if (paused()) {
    bench_.log.info(
        "paused", {{"reason", bench_.health.paused}, {"next", "nothing is claimed until `outboxd resume`"}});
  } else {
    bench_.log.info("resumed");
    bench_.health.look_answered = bench_.loop.now();
    bench_.plan.hint(bench_.loop.now());
  }
}

// Lanes are leased by nobody who delivers otherwise than those who work.
void Pipeline::note_delivery(const std::optional<Differing>& differs) {
  std::string said;
  if (differs)
    said = "instance " + differs->instance + " works with delivery: " + differs->delivery +
           ", and this one has " + std::string{delivery()} + ": it waits until no such instance has a lane";
  if (said == bench_.health.differs) return;
  bench_.health.differs = std::move(said);
  if (differs)
    bench_.log.error("delivery_differs",
                     {{"in_force", differs->delivery},
                      {"instance", differs->instance},
                      {"configured", delivery()},
                      {"next", "waits; give all instances of a pipeline the same delivery"}});
  else
    bench_.log.info("delivery_agrees", {{"delivery", delivery()}});
}

std::string_view Pipeline::delivery() const {
  return transactions_ ? exactly_once : at_least_once;
}

LeaseRequest Pipeline::lease_request(MonoTime now) {
  LeaseRequest request{.owner = bench_.options.owner,
                       .lanes = bench_.options.limits.lanes,
                       .ttl = bench_.options.lease_ttl,
                       .sent_per_s = sent_per_s(now),
                       .delivery = std::string{delivery()}};
  const auto stopped = transactions_ ? transactions_->longest_stopped(now) : std::nullopt;
  if (stopped) request.stopped = sentence(*stopped, now);
  return request;
}

double Pipeline::sent_per_s(MonoTime now) {
  const double seconds = std::chrono::duration<double>(now - rate_at_).count();
  const std::int64_t marked = bench_.counters.marked - rate_marked_;
  rate_at_ = now;
  rate_marked_ = bench_.counters.marked;
  return seconds > 0 ? static_cast<double>(marked) / seconds : 0;
}

void Pipeline::note_postgres(LinkState state, const std::string& why) {
  Health& health = bench_.health;
  health.postgres_down = state == LinkState::down ? std::optional{bench_.loop.now()} : std::nullopt;
  if (state == LinkState::up) return;
  health.postgres_losses += 1;
  health.postgres_error = why;
}

void Pipeline::note_kafka(LinkState state, const std::string& why) {
  Health& health = bench_.health;
  health.kafka_down = state == LinkState::down ? std::optional{bench_.loop.now()} : std::nullopt;
  if (state == LinkState::up) return;
  health.kafka_losses += 1;
  health.kafka_error = why;
}

}  // namespace outbox::relay
