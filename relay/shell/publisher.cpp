#include "relay/shell/publisher.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/crash_point.hpp"
#include "relay/core/kafka/partitioner.hpp"

namespace outbox::relay {
namespace {

constexpr std::size_t attempts_kept = 10'000;  // then the count begins again

Token token_of(Row& row) {
  return reinterpret_cast<Token>(&row);
}
Row& row_of(Token token) {
  // The broker gives back what it got.
  return *reinterpret_cast<Row*>(token);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

void Publisher::pump(MonoTime now) {
  for (const auto& topic : topics_.all()) {
    if (!topic) continue;
    note_stalled_partitions(*topic, now);
    if (topic->waiting.empty() || !topics_.ready(*topic, now)) continue;
    if (now < topic->careful_until)
      publish_carefully(*topic);
    else
      publish_in_order(*topic);
  }
}

void Publisher::publish_in_order(Topic& topic) {
  const auto away = [&](std::int32_t number) { return topic.stalled_partitions.away(Partition{number}); };
  if (!std::ranges::all_of(topic.busy, away)) return;  // the last of the careful ones are still under way
  while (!topic.waiting.empty()) {
    Row& row = *topic.waiting.front();
    const Partition partition = queues_.partition_of(topic, row);
    if (topic.stalled_partitions.away(partition)) {
      if (!queues_.deferred_room()) return;
      topic.waiting.pop_front();
      queues_.defer(topic, row, partition);
      continue;
    }
    topic.waiting.pop_front();
    row.alone = false;
    if (publish(topic, row, partition) != Step::blocked) continue;
    topic.waiting.push_front(&row);
    return;
  }
}

void Publisher::publish_carefully(Topic& topic) {
  for (std::size_t i = 0; i < topic.waiting.size() && topic.stalled_partitions.owing() < topic.partitions;) {
    Row& row = *topic.waiting[i];
    const Partition partition = queues_.partition_of(topic, row);
    const bool away = topic.stalled_partitions.away(partition);
    if (!away && topic.stalled_partitions.owes(partition)) {
      ++i;
      continue;
    }
    if (away && !queues_.deferred_room()) return;
    topic.waiting.erase(topic.waiting.begin() + static_cast<std::ptrdiff_t>(i));
    if (away) {
      queues_.defer(topic, row, partition);
      continue;
    }
    row.alone = true;
    const Step step = publish(topic, row, partition);
    if (step == Step::published) topic.busy.insert(partition.value);
    if (step != Step::blocked) continue;
    topic.waiting.insert(topic.waiting.begin() + static_cast<std::ptrdiff_t>(i), &row);
    return;
  }
}

Publisher::Step Publisher::publish(Topic& topic, Row& row, Partition partition) {
  if (std::string reason = queues_.unfit(topic, row); !reason.empty()) {
    if (topics_.look_again(topic, row)) return Step::blocked;
    queues_.kill(topic, row, std::move(reason));
    return Step::left;
  }
  if (unreported_ - away_ >= bench_.options.published_max) return Step::blocked;
  row.stage = Stage::published;
  row.partition = partition;
  const Result<Accepted> accepted = bench_.broker.publish({&row.message, partition, token_of(row)});
  if (accepted && *accepted == Accepted::queued) {
    topic.in_flight += 1;
    unreported_ += 1;
    bench_.counters.published += 1;
    topic.counters.published += 1;
    topic.stalled_partitions.published(partition, bench_.loop.now());
    crash_here(CrashPoint::relay_publishing);
    return Step::published;
  }
  row.stage = Stage::waiting;
  if (accepted) return Step::blocked;
  if (accepted.error().disposition != Disposition::quarantine)
    return Step::blocked;  // the producer is finished: it says so
  queues_.kill(topic, row, accepted.error().text());
  return Step::left;
}

void Publisher::delivered(std::span<const Delivery> reports) {
  const Moment now{bench_.loop.now(), bench_.loop.wall()};
  for (const Delivery& delivery : reports) report(delivery, now);
  bench_.schedule_turn();
}

void Publisher::report(const Delivery& delivery, const Moment& now) {
  Row& row = row_of(delivery.token);
  OUTBOX_CHECK(row.stage == Stage::published, "each published message is reported once");
  Topic& topic = topics_.at(row.topic);
  topic.in_flight -= 1;
  unreported_ -= 1;
  if (row.away) {
    away_ -= 1;
    bench_.flight.come_back(row);
  }
  if (topic.stalled_partitions.reported(row.partition, now.mono)) back(topic, row.partition);
  if (row.alone) topic.busy.erase(delivery.partition.value);
  if (delivery.refusal) return refused(topic, row, delivery);
  bench_.counters.acked += 1;
  topic.counters.acked += 1;
  bench_.timings.claim_to_ack.observe(took(row.batch->admitted_at, now.mono));
  bench_.timings.created_to_ack.observe(now.wall - row.message.available_at.value_or(row.message.created_at));
  if (!attempts_.empty()) attempts_.erase(row.message.id.value);
  topic.passed();
  bench_.flight.ack(row, delivery.partition, delivery.offset);
  crash_here(CrashPoint::relay_acked);
  marker_.add(row);
}

void Publisher::refused(Topic& topic, Row& row, const Delivery& delivery) {
  row.stage = Stage::waiting;
  switch (*delivery.refusal) {
    case Refusal::message:
      topic.careful_until = bench_.loop.now() + bench_.options.careful_for;
      if (row.alone) return queues_.kill(topic, row, delivery.reason);
      return queues_.again(topic, row);
    case Refusal::topic:
      bench_.drop(row);
      return topics_.unusable(topic, delivery.reason);
    case Refusal::unsent:
    case Refusal::producer:
      if (delivery.answered) {
        // The cluster would answer so again at once, and what stands behind it must not get through before
        // it.
        topics_.rest(topic);
        topic.careful_until = bench_.loop.now() + bench_.options.careful_for;
        if (exhausted(row)) return queues_.kill(topic, row, delivery.reason);
      }
      // Later rows of its key must not pass it: all of them are claimed again, in order.
      bench_.drop(row);
      return queues_.leave(topic);
  }
}

// Counted by this process alone: what another owner of the lane had tried before does not shorten a message's
// life. And only where the message was sent alone: a broker refuses whole batches, and the innocent with the
// guilty.
bool Publisher::exhausted(const Row& row) {
  if (bench_.options.max_attempts == 0 || !row.alone) return false;
  if (attempts_.size() >= attempts_kept) attempts_.clear();
  if (++attempts_[row.message.id.value] < bench_.options.max_attempts) return false;
  attempts_.erase(row.message.id.value);
  return true;
}

void Publisher::note_stalled_partitions(Topic& topic, MonoTime now) {
  for (const Partition partition : topic.stalled_partitions.overdue(now, bench_.options.away_after)) {
    bench_.log.warn("partition_away", {{"topic", topic.name},
                                       {"partition", partition.value},
                                       {"next", "its messages wait, the others go on"}});
    bench_.health.partitions_away += 1;
    bench_.flight.each([&](Row& row) {
      if (row.stage != Stage::published || row.topic != topic.number || row.partition != partition ||
          row.away)
        return;
      bench_.flight.leave_away(row);
      away_ += 1;
    });
  }
}

void Publisher::back(Topic& topic, Partition partition) {
  bench_.health.partitions_away -= 1;
  const std::int64_t rows = queues_.bring_back(topic, partition);
  bench_.log.info("partition_back",
                  {{"topic", topic.name}, {"partition", partition.value}, {"rows_waiting", rows}});
  bench_.plan.hint(bench_.loop.now());
}

MonoTime Publisher::wake_at() const {
  MonoTime at = MonoTime::max();
  for (const auto& topic : topics_.all())
    if (topic) at = std::min(at, topic->stalled_partitions.wake_at(bench_.options.away_after));
  return at;
}

}  // namespace outbox::relay
