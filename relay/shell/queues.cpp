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
  if (bench_.gate.blocks(row.message, row.claim)) {
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
  if (!topic.stragglers.any_closed(row.claim)) return false;
  return topic.stragglers.closed(row.claim) || topic.stragglers.closed(partition_of(topic, row), row.claim);
}

void Queues::again(Topic& topic, Row& row) {
  if (bench_.gate.blocks(row.message, row.claim)) return bench_.drop(row);
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
  topic.stragglers.close(bench_.plan.newest());
  drop(topic, any_row);
}

void Queues::set_aside(Topic& topic, Row& row, Partition partition) {
  if (bench_.flight.exclude(row.message.id, row.lease.lane)) {
    topic.stragglers.set_aside(partition, {row.message.id, row.message.shard, row.lease.lane});
    bench_.signs.rows_aside += 1;
  }
  bench_.drop(row);
}

void Queues::include(const std::vector<Aside>& rows) {
  for (const Aside& row : rows) {
    bench_.flight.include(row.row, row.lane);
    bench_.floors.again(row.shard, row.row);  // claims left it out until now, and may have passed it
  }
  Signs& signs = bench_.signs;
  signs.rows_aside -= std::ssize(rows);
  if (!signs.aside_full || signs.rows_aside >= bench_.options.aside_rows_max) return;
  signs.aside_full = false;
  bench_.log.info("aside_room", {{"rows", signs.rows_aside}});
}

bool Queues::aside_room() {
  Signs& signs = bench_.signs;
  if (signs.rows_aside < bench_.options.aside_rows_max) return true;
  if (std::exchange(signs.aside_full, true)) return false;
  bench_.log.error("aside_full", {{"rows", signs.rows_aside},
                                  {"partitions_away", signs.partitions_away},
                                  {"next", "rows of other partitions wait as well, until one is back"}});
  return false;
}

std::int64_t Queues::bring_back(Topic& topic, Partition partition) {
  topic.stragglers.close(partition, bench_.plan.newest());
  drop(topic, [&](const Row& row) { return partition_of(topic, row) == partition; });
  const std::vector<Aside> rows = topic.stragglers.take(partition);
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
    include(topic->stragglers.take(lanes));
    drop(*topic, of_them);
  }
}

}  // namespace outbox::relay
