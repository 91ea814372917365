// What transactions tell of lanes that cannot send.

#include <algorithm>
#include <utility>

#include "relay/shell/transactions.hpp"

namespace outbox::relay {

// Opening a lane takes a moment each time it is taken; that is no standstill.
bool Transactions::stands_still(const Lane& lane, MonoTime now) const {
  const bool in_vain = lane.in_vain && now - lane.well_at >= bench_.options.transaction_slow;
  if (in_vain && lane.state != State::absent) return true;
  switch (lane.state) {
    case State::absent:
    case State::ready:
      return false;
    case State::sending:
      return lane.slow;
    case State::waiting:
    case State::opening:
    case State::confirming:
      return lane.failing || now - lane.well_at >= bench_.options.transaction_slow;
  }
  return false;
}

std::string Transactions::why(const Lane& lane) const {
  if (lane.slow) return "its transaction waits for Kafka";
  if (lane.failing) return lane.why;
  if (lane.state == State::sending) return "its transaction waits for Kafka";
  if (lane.state == State::opening) return "Kafka has not opened it yet";
  if (lane.state == State::confirming) return "what its ledger names is not marked and confirmed yet";
  if (!old_ledgers_.error().empty()) return old_ledgers_.error();
  return "lanes of an earlier count are not settled yet";
}

std::vector<StoppedLane> Transactions::stopped(MonoTime now) const {
  std::vector<StoppedLane> out;
  for (const Lane& lane : lanes_)
    if (stands_still(lane, now))
      out.push_back({lane.lease.lane, std::chrono::duration_cast<Millis>(now - lane.well_at), why(lane)});
  return out;
}

std::optional<Health::Stopped> Transactions::longest_stopped(MonoTime now) const {
  std::optional<Health::Stopped> out;
  std::int64_t lanes = 0;
  bool answered = true;
  for (const Lane& lane : lanes_) {
    if (!stands_still(lane, now)) continue;
    lanes += 1;
    const bool called = lane.state == State::sending || lane.state == State::opening;
    answered = answered && !(called && now - lane.since >= bench_.options.transactor_lost);
    if (!out || lane.well_at < out->since)
      out = Health::Stopped{.lane = lane.lease.lane.value, .since = lane.well_at, .why = why(lane)};
  }
  if (out) {
    out->lanes = lanes;
    out->answered = answered;
  }
  return out;
}

}  // namespace outbox::relay
