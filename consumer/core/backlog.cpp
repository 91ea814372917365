#include "consumer/core/backlog.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.hpp"

namespace outbox {

std::string to_string(const PartitionId& id) {
  return id.topic + "-" + std::to_string(id.partition);
}

void Backlog::assign(const PartitionId& partition, std::int64_t epoch) {
  revoke(partition);
  const std::uint64_t tenure = ++tenures_;
  partitions_.emplace(partition, Partition{.tenure = tenure, .epoch = epoch});
  const auto add = [&](int strand, int worker) {
    const auto seed = tenure + static_cast<std::uint64_t>(strand);
    strands_.emplace(StrandId{partition, strand},
                     Strand{.worker = worker, .backoff = Backoff(limits_.backoff, seed)});
  };
  if (limits_.order == Order::partition) return add(0, idlest_worker());
  for (int worker = 0; worker < limits_.workers; ++worker) add(worker, worker);
}

int Backlog::idlest_worker() const {
  std::vector<int> strands(static_cast<std::size_t>(limits_.workers));
  for (const auto& [id, strand] : strands_) ++strands[static_cast<std::size_t>(strand.worker)];
  return static_cast<int>(std::ranges::min_element(strands) - strands.begin());
}

// Without a key there is no order to keep: any strand will do.
int Backlog::strand_of(const Record& record) const {
  if (limits_.order == Order::partition) return 0;
  const auto strands = static_cast<std::size_t>(limits_.workers);
  const auto hash =
      record.key ? std::hash<std::string_view>{}(*record.key) : static_cast<std::size_t>(record.offset);
  return static_cast<int>(hash % strands);
}

void Backlog::retire(const PartitionId& partition) {
  if (const auto found = partitions_.find(partition); found != partitions_.end())
    found->second.retired = true;
}

void Backlog::revoke(const PartitionId& partition) {
  partitions_.erase(partition);
  erase_strands(partition);
}

void Backlog::erase_strands(const PartitionId& partition) {
  std::erase_if(strands_, [&](const auto& one) { return one.first.first == partition; });
}

void Backlog::push(Fetched record) {
  const PartitionId id{std::string(record.record.topic), record.record.partition};
  const auto found = partitions_.find(id);
  if (found == partitions_.end()) return;
  Partition& partition = found->second;
  if (!partition.next) partition.next = record.record.offset;
  partition.unsettled.insert(record.record.offset);
  Strand& strand = strands_.at({id, strand_of(record.record)});
  strand.bytes += record.bytes;
  record.record.epoch = partition.epoch;
  strand.records.push_back(std::move(record));
}

bool Backlog::full() const {
  std::int64_t rows = 0, bytes = 0, waiting_rows = 0, waiting_bytes = 0;
  for (const auto& [id, strand] : strands_) {
    (strand.due ? waiting_rows : rows) += std::ssize(strand.records);
    (strand.due ? waiting_bytes : bytes) += strand.bytes;
  }
  return rows >= limits_.buffer_rows_max || bytes >= limits_.buffer_bytes_max ||
         rows + waiting_rows >= 2 * limits_.buffer_rows_max ||
         bytes + waiting_bytes >= 2 * limits_.buffer_bytes_max;
}

bool Backlog::takes_part(const StrandId& id, const Strand& strand, MonoTime now, int worker) const {
  return strand.worker == worker && !strand.at_work && !partitions_.at(id.first).retired &&
         !strand.records.empty() && (!strand.due || *strand.due <= now);
}

Backlog::Batch Backlog::take(MonoTime now, int worker) {
  Batch batch;
  std::int64_t bytes = 0;
  auto at = strands_.upper_bound(last_served_[worker]);
  for (std::size_t turn = 0; turn < strands_.size(); ++turn, ++at) {
    if (at == strands_.end()) at = strands_.begin();
    auto& [id, strand] = *at;
    if (!takes_part(id, strand, now, worker)) continue;
    const bool alone = strand.records.front().record.attempt > 1;
    if (alone && !batch.empty()) continue;
    take_from(id, strand, batch, bytes);
    last_served_[worker] = id;
    if (alone || bytes >= limits_.batch_bytes_max || std::ssize(batch.records) >= limits_.batch_rows_max)
      break;
  }
  return batch;
}

void Backlog::take_from(const StrandId& id, Strand& strand, Batch& batch, std::int64_t& bytes) const {
  std::size_t count = 0;
  const bool alone = strand.records.front().record.attempt > 1;
  while (!strand.records.empty() && std::ssize(batch.records) < limits_.batch_rows_max &&
         !(alone && count == 1)) {
    Fetched& next = strand.records.front();
    if (!batch.empty() && bytes + next.bytes > limits_.batch_bytes_max) break;
    bytes += next.bytes;
    strand.bytes -= next.bytes;
    batch.records.push_back(std::move(next));
    strand.records.pop_front();
    ++count;
  }
  if (count == 0) return;
  strand.at_work = true;
  batch.slices.push_back({id.first, id.second, partitions_.at(id.first).tenure, count});
}

void Backlog::finish(Batch batch, std::span<const Outcome> outcomes, MonoTime now) {
  OUTBOX_CHECK(outcomes.size() == batch.records.size(), "every record of a batch has an outcome");
  std::size_t at = 0;
  for (const auto& slice : batch.slices) {
    const auto records = std::span(batch.records).subspan(at, slice.count);
    const auto results = outcomes.subspan(at, slice.count);
    at += slice.count;
    const auto found = partitions_.find(slice.partition);
    if (found == partitions_.end() || found->second.tenure != slice.tenure) continue;
    Strand& strand = strands_.at({slice.partition, slice.strand});
    strand.at_work = false;
    put_back(found->second, strand, records, results, now);
  }
}

void Backlog::settle(Partition& partition, std::span<const Fetched> records) {
  for (const auto& one : records) partition.unsettled.extract(one.record.offset);
  partition.settled = std::max(partition.settled, records.back().record.offset + 1);
  const auto next = partition.unsettled.empty() ? partition.settled
                                                : std::min(partition.settled, *partition.unsettled.begin());
  if (next > *partition.next) partition.commit = partition.next = next;
}

void Backlog::put_back(Partition& partition, Strand& strand, std::span<Fetched> records,
                       std::span<const Outcome> outcomes, MonoTime now) {
  const auto stop = std::ranges::find_if_not(outcomes, &Outcome::settled);
  const auto done = static_cast<std::size_t>(stop - outcomes.begin());
  if (done > 0) {
    settle(partition, records.first(done));
    strand.backoff.reset();
  }
  strand.due.reset();
  if (stop == outcomes.end()) return;
  if (stop->fate == Fate::failed) ++records[done].record.attempt;
  strand.due = now + std::max(strand.backoff.next(), stop->retry_wait);
  for (std::size_t i = records.size(); i > done; --i) {
    strand.bytes += records[i - 1].bytes;
    strand.records.push_front(std::move(records[i - 1]));
  }
}

bool Backlog::at_work(const PartitionId& partition) const {
  return std::ranges::any_of(
      strands_, [&](const auto& one) { return one.first.first == partition && one.second.at_work; });
}

std::vector<PartitionId> Backlog::assigned() const {
  std::vector<PartitionId> out;
  out.reserve(partitions_.size());
  for (const auto& [id, partition] : partitions_) out.push_back(id);
  return out;
}

std::vector<PartitionId> Backlog::waiting() const {
  std::vector<PartitionId> out;
  for (const auto& [id, strand] : strands_)
    if (strand.due && (out.empty() || out.back() != id.first)) out.push_back(id.first);
  return out;
}

std::optional<MonoTime> Backlog::next_due(int worker) const {
  std::optional<MonoTime> out;
  for (const auto& [id, strand] : strands_)
    if (strand.worker == worker && strand.due && !strand.at_work && !partitions_.at(id.first).retired &&
        (!out || *strand.due < *out))
      out = strand.due;
  return out;
}

std::vector<NextOffset> Backlog::positions() const {
  std::vector<NextOffset> out;
  for (const auto& [id, partition] : partitions_)
    if (partition.next) out.push_back({id, *partition.next});
  return out;
}

std::vector<NextOffset> Backlog::take_commits() {
  std::vector<NextOffset> out;
  for (auto& [id, partition] : partitions_)
    if (partition.commit) out.push_back({id, *std::exchange(partition.commit, std::nullopt)});
  return out;
}

}  // namespace outbox
