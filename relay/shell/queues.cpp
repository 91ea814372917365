#include "relay/shell/queues.hpp"

#include <algorithm>
#include <utility>

#include "relay/core/kafka/partitioner.hpp"

namespace outbox::relay {
namespace {

bool any_row(const Row&) {
  return true;
}

}  // namespace

bool Queues::take(Row& row) {
  if (row.message.held == Held::yes) {
    settler_.set_held(row);
    return false;
  }
  if (bench_.blocklist.blocks(row.message, row.claim)) {
    bench_.drop(row);
    return false;
  }
  Topic& topic = topics_.of(row.message.topic);
  if (closed_out(topic, row)) {
    bench_.drop(row);
    return false;
  }
  row.topic = topic.number;
  topic.waiting.push_back(&row);
  return true;
}

bool Queues::closed_out(const Topic& topic, const Row& row) const {
  if (!topic.stalled_partitions.any_closed(row.claim)) return false;
  return topic.stalled_partitions.closed(row.claim) ||
         topic.stalled_partitions.closed(partition_of(topic, row), row.claim);
}

void Queues::again(Topic& topic, Row& row) {
  if (bench_.blocklist.blocks(row.message, row.claim)) return bench_.drop(row);
  const auto later = std::find_if(topic.waiting.begin(), topic.waiting.end(),
                                  [&](const Row* other) { return other->order > row.order; });
  topic.waiting.insert(later, &row);
}

Partition Queues::partition_of(const Topic& topic, const Row& row) const {
  const auto asked = partition_asked(row.message, bench_.options.partition_header, topic.partitions);
  return asked.partition.value_or(relay::partition_of(row.message, topic.partitions));
}

std::string Queues::unfit(const Topic& topic, const Row& row) const {
  if (auto asked = partition_asked(row.message, bench_.options.partition_header, topic.partitions);
      !asked.fault.empty())
    return std::move(asked.fault);
  const std::int64_t size = envelope_.encoded_size(row.message);
  if (size <= topic.message_bytes_max) return {};
  return "the message takes " + std::to_string(size) + " bytes, more than the topic's max.message.bytes of " +
         std::to_string(topic.message_bytes_max);
}

void Queues::kill(Topic& topic, Row& row, std::string reason) {
  if (settler_.hold_of(row.message))
    drop(topic, [&](const Row& other) { return other.message.key == row.message.key; });
  topic.counters.dead += 1;
  settler_.bury(row, std::move(reason));
}

template <class Chosen>
void Queues::drop(Topic& topic, Chosen chosen) {
  std::deque<Row*> others;
  for (Row* row : std::exchange(topic.waiting, {})) {
    if (chosen(*row))
      bench_.drop(*row);
    else
      others.push_back(row);
  }
  topic.waiting = std::move(others);
}

void Queues::leave(Topic& topic) {
  topic.stalled_partitions.close(bench_.plan.newest());
  drop(topic, any_row);
}

void Queues::defer(Topic& topic, Row& row, Partition partition) {
  if (bench_.flight.exclude(name_of(row.message), row.lease.lane)) {
    topic.stalled_partitions.defer(partition, {name_of(row.message), row.message.shard, row.lease.lane});
    bench_.health.rows_deferred += 1;
  }
  bench_.drop(row);
}

void Queues::include(const std::vector<Deferred>& rows) {
  for (const Deferred& row : rows) {
    bench_.flight.include(row.row, row.lane);
    bench_.floors.lower_to(row.shard, row.row.id);  // claims left it out until now, and may have passed it
  }
  Health& health = bench_.health;
  health.rows_deferred -= std::ssize(rows);
  if (!health.deferred_full || health.rows_deferred >= bench_.options.deferred_rows_max) return;
  health.deferred_full = false;
  bench_.log.info("deferred_room", {{"rows", health.rows_deferred}});
}

bool Queues::deferred_room() {
  Health& health = bench_.health;
  if (health.rows_deferred < bench_.options.deferred_rows_max) return true;
  if (std::exchange(health.deferred_full, true)) return false;
  bench_.log.error("deferred_full", {{"rows", health.rows_deferred},
                                     {"partitions_away", health.partitions_away},
                                     {"next", "rows of other partitions wait as well, until one is back"}});
  return false;
}

std::int64_t Queues::bring_back(Topic& topic, Partition partition) {
  topic.stalled_partitions.close(partition, bench_.plan.newest());
  drop(topic, [&](const Row& row) { return partition_of(topic, row) == partition; });
  const std::vector<Deferred> rows = topic.stalled_partitions.take(partition);
  include(rows);
  return std::ssize(rows);
}

void Queues::drop() {
  drop(LaneSet{}.set());
}

void Queues::drop(const LaneSet& lanes) {
  const auto of_them = [&](const Row& row) {
    return lanes.test(static_cast<std::size_t>(row.lease.lane.value));
  };
  for (const auto& topic : topics_.all()) {
    if (!topic) continue;
    include(topic->stalled_partitions.take(lanes));
    drop(*topic, of_them);
  }
}

}  // namespace outbox::relay
