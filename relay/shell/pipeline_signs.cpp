// What a pipeline notes of its servers, its looks and its operators, for the judgement whether it gets on.

#include <utility>

#include "relay/shell/pipeline.hpp"

namespace outbox::relay {

// Claiming stops; what was claimed before is sent and marked, and the lanes are kept.
void Pipeline::note_paused(std::string reason) {
  const bool was = paused();
  bench_.signs.paused = std::move(reason);
  if (was == paused()) return;
  if (paused()) {
    bench_.log.info("paused",
                    {{"reason", bench_.signs.paused}, {"next", "nothing is claimed until `outboxd resume`"}});
  } else {
    bench_.log.info("resumed");
    bench_.signs.look_answered = bench_.loop.now();
    bench_.plan.hint(bench_.loop.now());
  }
}

// A look that finds nothing, with nothing in flight, owes nothing. One whose rows are dropped again and again
// does.
void Pipeline::note_look(const ClaimYield& yield, MonoTime now) {
  Signs& signs = bench_.signs;
  signs.look_answered = now;
  if (yield.rows > 0)
    signs.taken_on(now);
  else if (yield.dropped == 0 && bench_.flight.rows() == 0)
    signs.owing.reset();
}

void Pipeline::note_postgres(LinkState state, const std::string& why) {
  Signs& signs = bench_.signs;
  signs.postgres_down = state == LinkState::down ? std::optional{bench_.loop.now()} : std::nullopt;
  if (state == LinkState::up) return;
  signs.postgres_losses += 1;
  signs.postgres_error = why;
}

void Pipeline::note_kafka(LinkState state, const std::string& why) {
  Signs& signs = bench_.signs;
  signs.kafka_down = state == LinkState::down ? std::optional{bench_.loop.now()} : std::nullopt;
  if (state == LinkState::up) return;
  signs.kafka_losses += 1;
  signs.kafka_error = why;
}

}  // namespace outbox::relay
