#include "relay/shell/transactions.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "relay/core/kafka/partitioner.hpp"

namespace outbox::relay {
namespace {

constexpr std::int64_t batch_slack = 128;  // librdkafka estimates a batch's own overhead

struct RowKey {
  RowName name;
  std::int32_t generation;
  friend auto operator<=>(const RowKey&, const RowKey&) = default;
};

}  // namespace

Transactions::Transactions(Workbench& bench, Transactor& transactor, const LaneLeases& leases, Topics& topics,
                           Queues& queues, Marker& marker)
    : bench_(bench),
      transactor_(transactor),
      leases_(leases),
      topics_(topics),
      queues_(queues),
      marker_(marker),
      old_ledgers_(bench, transactor, leases) {
  marker_.watch([this](const Row& row, Marker::Outcome outcome) { marked(row, outcome); });
}

void Transactions::enter(Lane& lane, State state) {
  if (lane.state == State::absent || state == State::absent) lane.in_vain = false;
  const bool works = (state == State::ready || state == State::sending) && !lane.in_vain;
  const bool well = lane.state == State::absent || works;
  lane.state = state;
  lane.since = bench_.loop.now();
  if (well) lane.well_at = lane.since;
}

void Transactions::pump(MonoTime now) {
  wake_at_ = MonoTime::max();
  follow_leases(now);
  old_ledgers_.pump(now);
  if (!old_ledgers_.settled()) wake_at_ = old_ledgers_.wake_at();
  for (Lane& lane : lanes_) {
    if (lane.state == State::waiting && old_ledgers_.settled()) {
      if (now >= lane.retry_at)
        open(lane);
      else
        wake_at_ = std::min(wake_at_, lane.retry_at);
    }
    if (lane.state == State::confirming) confirm(lane, now);
    if (lane.state == State::sending) watch(lane, now);
    if (lane.state == State::ready && lane.in_vain) rest(lane, now);
  }
  fill(now);
}

// One that has nothing more to send is well: what was refused is out of its way.
void Transactions::rest(Lane& lane, MonoTime now) {
  const MonoTime rested = lane.since + bench_.options.transaction_slow;
  if (now < rested) {
    wake_at_ = std::min(wake_at_, rested);
    return;
  }
  recovered(lane);
  lane.well_at = now;
}

void Transactions::recovered(Lane& lane) {
  lane.in_vain = false;
  lane.backoff.reset();
  if (std::exchange(lane.failing, false))
    bench_.log.info("lane_recovered", {{"lane", lane.lease.lane.value}});
}

// A transaction that takes long is looked at again: when its lane is claimed no more, and when that is told.
void Transactions::watch(Lane& lane, MonoTime now) {
  const MonoTime unclaimed = lane.since + bench_.options.limits.stalled_after;
  const MonoTime slow = lane.since + bench_.options.transaction_slow;
  if (now < unclaimed) wake_at_ = std::min(wake_at_, unclaimed);
  if (now < slow) {
    wake_at_ = std::min(wake_at_, slow);
  } else if (!std::exchange(lane.slow, true)) {
    bench_.log.warn("transaction_slow", {{"lane", lane.lease.lane.value},
                                         {"rows", std::ssize(lane.rows)},
                                         {"next", "its lane waits for Kafka; others go on"}});
  }
}

void Transactions::follow_leases(MonoTime now) {
  for (std::int16_t n = 0; n < shard_count; ++n) {
    const auto& held = leases_.held(LaneId{n});
    if (Lane& lane = of(LaneId{n}); lane.state != State::absent && (!held || held->epoch != lane.lease.epoch))
      leave(lane);
  }
  for (std::int16_t n = 0; n < shard_count; ++n) {
    Lane& lane = of(LaneId{n});
    const auto& held = leases_.held(LaneId{n});
    if (lane.state != State::absent || !held || !lane.rows.empty()) continue;
    if (none_held()) old_ledgers_.forget();  // the lanes may have been dealt again since
    if (lane.lease.epoch != held->epoch) lane.unmarked = 0;
    lane.lease = *held;
    lane.retry_at = now;
    enter(lane, State::waiting);
  }
}

bool Transactions::none_held() const {
  return std::ranges::all_of(lanes_, [](const Lane& lane) { return lane.state == State::absent; });
}

// A transaction under way is given up, and its rows stay where they are until its end is told, since Kafka
// looks at them. Rows whose end is not known are left to who has the lane next: the ledger tells that one.
void Transactions::leave(Lane& lane) {
  const bool sending = lane.state == State::sending;
  enter(lane, State::absent);
  lane.failing = lane.slow = false;
  if (sending) return transactor_.abandon(lane.ledger_lane);
  lane.life += 1;
  drop_rows(lane);
  transactor_.close(lane.ledger_lane);
}

void Transactions::cut_off() {
  for (Lane& lane : lanes_)
    if (lane.state != State::absent) leave(lane);
  old_ledgers_.forget();
}

void Transactions::open(Lane& lane) {
  enter(lane, State::opening);
  lane.life += 1;
  lane.batch_bytes = batch_bytes_;
  lane.ledger_marked = false;
  const LedgerStanding& standing = old_ledgers_.standing();
  lane.ledger_lane = {standing.present.number, lane.lease.lane};
  bench_.counters.lane_producers_opened += 1;
  transactor_.open({standing.ledger, lane.ledger_lane, standing.present.lanes, lane.batch_bytes},
                   [this, &lane, life = lane.life](Result<std::vector<LedgerRow>> answer) {
                     if (life == lane.life) opened(lane, std::move(answer));
                     bench_.schedule_turn();
                   });
}

void Transactions::opened(Lane& lane, Result<std::vector<LedgerRow>> answer) {
  if (!answer) return failed(lane, answer.error());
  enter(lane, State::confirming);
  lane.confirm_from = bench_.lease_requests + 1;
  bench_.doubt_leases();
  decide(lane, *answer);
}

// Of the rows whose end was not known, those that the ledger names are in Kafka, and the others are not.
void Transactions::decide(Lane& lane, const std::vector<LedgerRow>& named) {
  std::map<RowKey, Row*> ours;
  for (Row* row : lane.rows) ours[{name_of(row->message), row->message.generation}] = row;
  std::vector<LedgerRow> others;
  for (const LedgerRow& row : named) {
    const auto at = ours.find({{row.id, row.msg_id}, row.generation});
    if (at == ours.end()) {
      others.push_back(row);
      continue;
    }
    lane.in_vain = false;  // its transaction was committed, whatever was said of it
    lane.unmarked += 1;
    std::erase(lane.rows, at->second);
    committed(*at->second, row.partition, row.offset);
    ours.erase(at);
  }
  drop_rows(lane);
  if (others.empty()) {
    lane.ledger_marked = true;
    return;
  }
  const LaneOf of{lane.ledger_lane.lane, old_ledgers_.standing().present.lanes};
  mark_ledger_rows(bench_, others, of, lane.lease, [this, &lane, life = lane.life](const Status& status) {
    if (life != lane.life) return;
    if (status)
      lane.ledger_marked = true;
    else
      failed(lane, status.error());
    bench_.schedule_turn();
  });
}

// What waits of the lane goes with them: a later row of a key must not pass one that is left for a later
// claim.
void Transactions::drop_rows(Lane& lane) {
  if (!lane.rows.empty()) queues_.drop(LaneSet{}.set(index(lane.lease.lane)));
  const auto refused = std::exchange(lane.refused, {});
  for (Row* row : std::exchange(lane.rows, {})) {
    topics_.at(row->topic).in_flight -= 1;
    row->stage = Stage::waiting;
    const auto at = refused.find(row);
    if (at != refused.end() && lane.state != State::absent)
      settle_refused(*row, at->second);
    else
      bench_.drop(*row);
  }
}

void Transactions::settle_refused(Row& row, const RefusedMessage& refused) {
  Topic& topic = topics_.at(row.topic);
  if (refused.refusal == Refusal::message && row.alone) return queues_.kill(topic, row, refused.reason);
  bench_.drop(row);
  if (refused.refusal == Refusal::topic) return topics_.unusable(topic, refused.reason);
  topic.careful_until = bench_.loop.now() + bench_.options.careful_for;
}

void Transactions::lease_confirmed(std::uint64_t request) {
  for (Lane& lane : lanes_)
    if (lane.state == State::confirming && request >= lane.confirm_from) lane.confirm_from = 0;
}

// Only a claim that begins from here on sees what was marked.
void Transactions::confirm(Lane& lane, MonoTime now) {
  if (lane.confirm_from != 0 || !lane.ledger_marked || lane.unmarked > 0) return;
  enter(lane, State::ready);
  lane.ready_since = bench_.plan.newest();
  if (!lane.in_vain) recovered(lane);  // else once it commits, or has nothing to send
  bench_.plan.hint(now);
}

void Transactions::failed(Lane& lane, const Error& error) {
  enter(lane, State::waiting);
  lane.life += 1;
  lane.retry_at = bench_.loop.now() + lane.backoff.next();
  const bool mended = error.disposition == Disposition::fatal && lane.why != error.text();
  lane.why = error.text();
  transactor_.close(lane.ledger_lane);
  bench_.doubt_leases();
  // Told once; what only a person can mend is told again where the next thing is wrong.
  if (!std::exchange(lane.failing, true) || mended)
    bench_.log.warn("lane_stopped", {{"lane", lane.lease.lane.value},
                                     {"rows", std::ssize(lane.rows)},
                                     {"error", lane.why},
                                     {"next", "opened again; the ledger tells what is in Kafka"}});
}

void Transactions::committed(Row& row, Partition partition, Offset offset) {
  Topic& topic = topics_.at(row.topic);
  topic.in_flight -= 1;
  bench_.counters.acked += 1;
  topic.counters.acked += 1;
  topic.passed();
  bench_.timings.claim_to_ack.observe(took(row.batch->admitted_at, bench_.loop.now()));
  bench_.timings.created_to_ack.observe(bench_.loop.wall() -
                                        row.message.available_at.value_or(row.message.created_at));
  bench_.flight.ack(row, partition, offset);
  marker_.add(row);
}

std::int64_t Transactions::batch_bytes_of(const Topic& topic) const {
  return std::max<std::int64_t>(topic.message_bytes_max - batch_slack, 1);
}

// Whether the row waits for a later transaction. Later rows of its key stay, too: they are of its lane and
// its partition.
bool Transactions::stays(const Topic& topic, const Row& row, Partition partition, bool careful) {
  const Lane& lane = of(row.lease.lane);
  Load& load = loads_[index(row.lease.lane)];
  if (lane.state != State::ready || lane.unmarked > 0 || load.full) return true;
  if (lane.batch_bytes > batch_bytes_) return true;
  if (careful && load.busy.contains({topic.number, partition.value})) return true;
  const ClaimLimits& limits = bench_.options.limits;
  load.full = std::ssize(load.rows) >= limits.batch_rows ||
              (!load.rows.empty() && load.bytes + row.bytes > limits.batch_bytes + limits.batch_bytes / 2);
  return load.full;
}

// Each lane that is ready gets what waits for it, topic by topic, in order.
void Transactions::fill(MonoTime now) {
  const bool any = std::ranges::any_of(
      lanes_, [](const Lane& lane) { return lane.state == State::ready && lane.unmarked == 0; });
  if (!any) return;
  for (const auto& entry : topics_.all()) {
    if (!entry) continue;
    Topic& topic = *entry;
    if (topic.waiting.empty() || !topics_.ready(topic, now)) continue;
    batch_bytes_ = std::min(batch_bytes_, batch_bytes_of(topic));
    const bool careful = now < topic.careful_until;
    std::deque<Row*> kept;
    while (!topic.waiting.empty()) {
      Row& row = *topic.waiting.front();
      topic.waiting.pop_front();
      const Partition partition = queues_.partition_of(topic, row);
      if (stays(topic, row, partition, careful)) {
        kept.push_back(&row);
      } else if (std::string reason = queues_.unfit(topic, row); !reason.empty()) {
        if (topics_.look_again(topic, row)) {
          kept.push_back(&row);
          for (Row* later : std::exchange(topic.waiting, {})) kept.push_back(later);
          break;
        }
        queues_.kill(topic, row, std::move(reason));
      } else {
        Load& load = loads_[index(row.lease.lane)];
        row.partition = partition;
        row.alone = careful;
        if (careful) load.busy.emplace(topic.number, partition.value);
        load.bytes += row.bytes;
        load.rows.push_back(&row);
      }
    }
    topic.waiting = std::move(kept);
  }
  for (Lane& lane : lanes_) {
    if (lane.state != State::ready) continue;
    if (!loads_[index(lane.lease.lane)].rows.empty())
      send(lane);
    else if (lane.unmarked == 0 && lane.batch_bytes > batch_bytes_)
      open(lane);  // with smaller batches
  }
}

void Transactions::send(Lane& lane) {
  Load& load = loads_[index(lane.lease.lane)];
  lane.rows = std::move(load.rows);
  load = {};
  std::vector<Outgoing> messages;
  messages.reserve(lane.rows.size());
  for (Row* row : lane.rows) {
    row->stage = Stage::published;
    Topic& topic = topics_.at(row->topic);
    topic.in_flight += 1;
    topic.counters.published += 1;
    messages.push_back({&row->message, row->partition, 0});
  }
  bench_.counters.published += std::ssize(lane.rows);
  enter(lane, State::sending);
  transactor_.send(lane.ledger_lane, std::move(messages), [this, &lane](TransactionEnd end) {
    ended(lane, std::move(end));
    bench_.schedule_turn();
  });
}

void Transactions::ended(Lane& lane, TransactionEnd end) {
  lane.slow = false;
  if (end.committed) {
    bench_.counters.transactions += 1;
    if (lane.state == State::sending) recovered(lane);
    OUTBOX_CHECK(end.offsets.size() == lane.rows.size(),
                 "each message of a committed transaction has an offset");
    lane.unmarked += std::ssize(lane.rows);
    const auto rows = std::exchange(lane.rows, {});
    for (std::size_t i = 0; i < rows.size(); ++i) committed(*rows[i], rows[i]->partition, end.offsets[i]);
    if (lane.state == State::sending) return enter(lane, State::ready);
  } else {
    bench_.counters.transactions_failed += 1;
    lane.in_vain = true;
    for (RefusedMessage& refused : end.refused) lane.refused[lane.rows[refused.index]] = std::move(refused);
    if (lane.state == State::sending) return failed(lane, end.error.value_or(Error{}));
  }
  // The lane was left meanwhile: its next owner reads the ledger.
  lane.life += 1;
  drop_rows(lane);
  transactor_.close(lane.ledger_lane);
}

void Transactions::marked(const Row& row, Marker::Outcome outcome) {
  Lane& lane = of(row.lease.lane);
  if (lane.lease.epoch != row.lease.epoch) return;  // counted no more: the ledger was read since
  lane.unmarked -= 1;
  const bool open = lane.state == State::confirming || lane.state == State::ready;
  if (outcome == Marker::Outcome::lost && open)
    failed(lane, Error{Disposition::retry, "", "another instance has the lane", ""});
}

LaneSet Transactions::claimable(MonoTime now) const {
  LaneSet out;
  for (const Lane& lane : lanes_) {
    const bool slow = lane.state == State::sending && now - lane.since >= bench_.options.limits.stalled_after;
    if (lane.state == State::ready || (lane.state == State::sending && !slow))
      out.set(index(lane.lease.lane));
  }
  return out;
}

bool Transactions::takes(LaneId lane, ClaimSerial claim) const {
  const Lane& of_it = lanes_[index(lane)];
  return (of_it.state == State::ready || of_it.state == State::sending) && claim > of_it.ready_since;
}

}  // namespace outbox::relay
