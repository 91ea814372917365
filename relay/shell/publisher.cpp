#include "relay/shell/publisher.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/crash_point.hpp"
#include "relay/core/partitioner.hpp"

namespace outbox::relay {
namespace {

Token token_of(Row& row) {
  return reinterpret_cast<Token>(&row);
}
Row& row_of(Token token) {
  return *reinterpret_cast<Row*>(token);
}
bool any_row(const Row&) {
  return true;
}

}  // namespace

bool Publisher::take(Row& row) {
  if (row.message.held == Held::yes) {
    settler_.set_held(row);
    return false;
  }
  if (bench_.gate.blocks(row.message, row.claim)) {
    bench_.drop(row);
    return false;
  }
  Topic& topic = topics_.of(row.message.topic);
  row.topic = topic.number;
  topic.waiting.push_back(&row);
  return true;
}

void Publisher::pump(MonoTime now) {
  for (const auto& topic : topics_.all()) {
    if (topic->waiting.empty() || !topics_.ready(*topic, now)) continue;
    if (now < topic->careful_until)
      publish_carefully(*topic);
    else
      publish_in_order(*topic);
  }
}

void Publisher::publish_in_order(Topic& topic) {
  if (!topic.busy.empty()) return;  // the last of the careful ones are still under way
  while (!topic.waiting.empty()) {
    Row& row = *topic.waiting.front();
    topic.waiting.pop_front();
    row.alone = false;
    if (publish(topic, row, partition_of(topic, row)) != Step::blocked) continue;
    topic.waiting.push_front(&row);
    return;
  }
}

void Publisher::publish_carefully(Topic& topic) {
  if (topic.in_flight > std::ssize(topic.busy)) return;  // what was sent before the refusal reports first
  for (std::size_t i = 0; i < topic.waiting.size() && std::ssize(topic.busy) < topic.partitions;) {
    Row& row = *topic.waiting[i];
    const Partition partition = partition_of(topic, row);
    if (topic.busy.contains(partition.value)) {
      ++i;
      continue;
    }
    topic.waiting.erase(topic.waiting.begin() + static_cast<std::ptrdiff_t>(i));
    row.alone = true;
    const Step step = publish(topic, row, partition);
    if (step == Step::published) topic.busy.insert(partition.value);
    if (step != Step::blocked) continue;
    topic.waiting.insert(topic.waiting.begin() + static_cast<std::ptrdiff_t>(i), &row);
    return;
  }
}

Partition Publisher::partition_of(const Topic& topic, const Row& row) const {
  return relay::partition_of(row.message, topic.partitions);
}

std::string Publisher::unfit(const Topic& topic, const Row& row) const {
  const std::int64_t size = envelope_.encoded_size(row.message);
  if (size <= topic.message_bytes_max) return {};
  return "the message takes " + std::to_string(size) + " bytes, more than the topic's max.message.bytes of " +
         std::to_string(topic.message_bytes_max);
}

Publisher::Step Publisher::publish(Topic& topic, Row& row, Partition partition) {
  if (std::string reason = unfit(topic, row); !reason.empty()) {
    kill(topic, row, std::move(reason));
    return Step::left;
  }
  row.stage = Stage::published;
  const Result<Accepted> accepted = bench_.broker.publish({&row.message, partition, token_of(row)});
  if (accepted && *accepted == Accepted::queued) {
    topic.in_flight += 1;
    unreported_ += 1;
    bench_.counters.published += 1;
    topic.counters.published += 1;
    crash_here(CrashPoint::relay_publishing);
    return Step::published;
  }
  row.stage = Stage::waiting;
  if (accepted) return Step::blocked;
  if (accepted.error().disposition != Disposition::quarantine)
    return Step::blocked;  // the producer is finished: it says so
  kill(topic, row, accepted.error().text());
  return Step::left;
}

void Publisher::kill(Topic& topic, Row& row, std::string reason) {
  if (settler_.hold_of(row.message))
    drop_waiting(topic, [&](const Row& other) { return other.message.key == row.message.key; });
  topic.counters.dead += 1;
  settler_.bury(row, std::move(reason));
}

void Publisher::delivered(std::span<const Delivery> reports) {
  const Moment now{bench_.loop.now(), bench_.loop.wall()};
  for (const Delivery& delivery : reports) report(delivery, now);
  bench_.stir();
}

void Publisher::report(const Delivery& delivery, const Moment& now) {
  Row& row = row_of(delivery.token);
  OUTBOX_CHECK(row.stage == Stage::published, "each published message is reported once");
  Topic& topic = topics_.at(row.topic);
  topic.in_flight -= 1;
  unreported_ -= 1;
  if (row.alone) topic.busy.erase(delivery.partition.value);
  if (delivery.refusal) return refused(topic, row, delivery);
  bench_.counters.acked += 1;
  topic.counters.acked += 1;
  bench_.timings.claim_to_ack.observe(took(row.batch->admitted_at, now.mono));
  bench_.timings.created_to_ack.observe(now.wall - row.message.available_at.value_or(row.message.created_at));
  bench_.flight.ack(row, delivery.partition, delivery.offset);
  crash_here(CrashPoint::relay_acked);
  marker_.add(row);
}

void Publisher::refused(Topic& topic, Row& row, const Delivery& delivery) {
  row.stage = Stage::waiting;
  switch (*delivery.refusal) {
    case Refusal::message:
      topic.careful_until = bench_.loop.now() + bench_.options.careful_for;
      if (row.alone) return kill(topic, row, delivery.reason);
      return queue_again(topic, row);
    case Refusal::topic:
      bench_.drop(row);
      return topics_.unusable(topic, delivery.reason);
    case Refusal::unsent:
    case Refusal::producer:
      // Later rows of its key must not pass it: all of them are claimed again, in order.
      bench_.drop(row);
      return drop_waiting(topic, any_row);
  }
}

void Publisher::queue_again(Topic& topic, Row& row) {
  if (bench_.gate.blocks(row.message, row.claim)) return bench_.drop(row);
  const auto later = std::find_if(topic.waiting.begin(), topic.waiting.end(),
                                  [&](const Row* other) { return other->order > row.order; });
  topic.waiting.insert(later, &row);
}

template <class Chosen>
void Publisher::drop_waiting(Topic& topic, Chosen chosen) {
  std::deque<Row*> others;
  for (Row* row : std::exchange(topic.waiting, {})) {
    if (chosen(*row))
      bench_.drop(*row);
    else
      others.push_back(row);
  }
  topic.waiting = std::move(others);
}

void Publisher::drop_waiting() {
  for (const auto& topic : topics_.all()) drop_waiting(*topic, any_row);
}

void Publisher::drop_waiting(const LaneSet& lanes) {
  for (const auto& topic : topics_.all())
    drop_waiting(*topic,
                 [&](const Row& row) { return lanes.test(static_cast<std::size_t>(row.lease.lane.value)); });
}

}  // namespace outbox::relay
