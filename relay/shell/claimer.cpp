#include "relay/shell/claimer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/crash_point.hpp"
#include "relay/core/claim/due_order.hpp"

namespace outbox::relay {
namespace {

constexpr Millis tell_locked_every{60'000};

}  // namespace

void Claimer::set_lanes(const LaneSet& lanes) {
  lanes_ = lanes;
  bench_.plan.set_lanes(leases_.lanes(), lanes_);
}

void Claimer::pump(MonoTime now) {
  while (const auto next = bench_.plan.next(now, bench_.flight)) send(*next, now);
}

void Claimer::send(const Claim& claim, MonoTime now) {
  ClaimRequest request = request_of(claim, now);
  Sent sent{request.shards, request.floors, now};
  bench_.counters.claims += 1;
  bench_.source.claim(std::move(request), [this, claim, sent = std::move(sent)](Result<Batch> batch) {
    bench_.timings.claim.observe(took(sent.at, bench_.loop.now()));
    if (batch && !batch->rows.empty()) crash_here(CrashPoint::relay_claimed, batch);
    claimed(claim, sent, std::move(batch));
    bench_.schedule_turn();
  });
  crash_here(CrashPoint::relay_claim_asked);
}

ClaimRequest Claimer::request_of(const Claim& claim, MonoTime now) {
  const LaneSet lanes = claim.lane ? LaneSet{}.set(static_cast<std::size_t>(claim.lane->value)) : lanes_;
  ClaimRequest request{.look = claim.look,
                       .shards = shards_of(lanes, leases_.lanes()),
                       .except = bench_.flight.left_out_rows(lanes),
                       .rows_max = claim.rows_max,
                       .bytes_max = claim.bytes_max};
  request.floors = bench_.floors.floors_for(request.shards, leases_.leases(), now);
  request.releases = bench_.floors.releases();
  return request;
}

void Claimer::claimed(const Claim& claim, const Sent& sent, Result<Batch> batch) {
  const MonoTime now = bench_.loop.now();
  if (!batch) {
    bench_.floors.reset();
    bench_.plan.failed(claim, now);
    bench_.counters.claims_failed += 1;
    if (!std::exchange(failing_, true))
      bench_.log.warn("claim_failed", {{"error", batch.error().text()}, {"next", "tried again"}});
    return;
  }
  if (std::exchange(failing_, false)) bench_.log.info("claim_recovered");
  bench_.floors.claimed({sent.shards, sent.floors, claim.look, sent.at}, *batch, now);
  const ClaimYield yield = take(claim, std::move(*batch), now);
  note_look(yield, now);
  bench_.plan.claimed(claim, yield, now);
}

ClaimYield Claimer::take(const Claim& claim, Batch batch, MonoTime now) {
  ClaimYield yield{.rows = 0, .dropped = 0, .more = batch.more, .next_due = std::nullopt};
  if (batch.next_due)
    yield.next_due =
        std::max(Millis{0}, std::chrono::duration_cast<Millis>(*batch.next_due - bench_.loop.wall()));
  if (!owner_.working(now)) {  // the lanes were lost, or we stop: the rows stay PENDING
    bench_.floors.reset();
    return yield;
  }
  leave_out_foreign(batch.rows, claim.serial);
  leave_out_foreign(batch.due, claim.serial);
  const PublishingOrder order = in_publishing_order(batch);
  leave_waiting(order.waiting, now);
  for (Row& row :
       bench_.flight.admit(order.rows, std::move(batch.memory), leases_.leases(), claim.serial, now)) {
    bench_.counters.claimed += 1;
    if (queues_.take(row))
      yield.rows += 1;
    else
      yield.dropped += 1;
  }
  owner_.publish(now);
  if (yield.rows > 0) crash_here(CrashPoint::relay_published);
  return yield;
}

// Whoever locked them says nothing when they let go: the next looks find out. Nothing is owed meanwhile, so the
// relay does not call itself stuck for somebody else's open transaction.
void Claimer::leave_waiting(const std::vector<Message>& waiting, MonoTime now) {
  std::int64_t locked = 0;
  for (const Message& m : waiting) {
    bench_.unsent(m);
    if (m.locked == Locked::no) continue;
    if (locked++ > 0 || now < tell_locked_at_) continue;
    tell_locked_at_ = now + tell_locked_every;
    bench_.log.warn(
        "due_row_locked",
        {{"row", m.id.value},
         {"topic", m.topic},
         {"next", "it and what follows of its key wait until the transaction that locked it ends"}});
  }
  bench_.counters.due_locked += locked;
}

// Rows of lanes that began to drain, or were opened again, while the claim was under way.
void Claimer::leave_out_foreign(std::vector<Message>& rows, ClaimSerial claim) {
  const auto leases = leases_.leases();
  std::erase_if(rows, [&](const Message& m) {
    const LaneId lane = lane_of(m.shard, leases_.lanes());
    const bool foreign = !leases[static_cast<std::size_t>(lane.value)] || !owner_.takes(lane, claim);
    if (foreign) bench_.unsent(m);
    return foreign;
  });
}

// A look that finds nothing, with nothing in flight, owes nothing. One whose rows are dropped again and again
// does.
void Claimer::note_look(const ClaimYield& yield, MonoTime now) {
  Health& health = bench_.health;
  health.look_answered = now;
  if (yield.rows > 0)
    health.taken_on(now);
  else if (yield.dropped == 0 && bench_.flight.rows() == 0)
    health.owing.reset();
}

}  // namespace outbox::relay
