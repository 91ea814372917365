#include "consumer/core/backlog.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace outbox {

void Backlog::assign(const PartitionId& partition) {
  const std::uint64_t tenure = ++tenures_;
  queues_.erase(partition);
  queues_.emplace(
      partition,
      Queue{.tenure = tenure, .worker = idlest_worker(), .backoff = Backoff(limits_.backoff, tenure)});
}

int Backlog::idlest_worker() const {
  std::vector<int> partitions(static_cast<std::size_t>(limits_.workers));
  for (const auto& [id, queue] : queues_) ++partitions[static_cast<std::size_t>(queue.worker)];
  return static_cast<int>(std::ranges::min_element(partitions) - partitions.begin());
}

void Backlog::retire(const PartitionId& partition) {
  if (const auto found = queues_.find(partition); found != queues_.end()) found->second.retired = true;
}

void Backlog::revoke(const PartitionId& partition) {
  queues_.erase(partition);
}

void Backlog::push(Fetched record) {
  const auto found = queues_.find({std::string(record.record.topic), record.record.partition});
  if (found == queues_.end()) return;
  if (!found->second.next) found->second.next = record.record.offset;
  found->second.bytes += record.bytes;
  found->second.records.push_back(std::move(record));
}

bool Backlog::full() const {
  std::int64_t rows = 0, bytes = 0, waiting_rows = 0, waiting_bytes = 0;
  for (const auto& [id, queue] : queues_) {
    (queue.due ? waiting_rows : rows) += static_cast<std::int64_t>(queue.records.size());
    (queue.due ? waiting_bytes : bytes) += queue.bytes;
  }
  return rows >= limits_.buffer_rows_max || bytes >= limits_.buffer_bytes_max ||
         rows + waiting_rows >= 2 * limits_.buffer_rows_max ||
         bytes + waiting_bytes >= 2 * limits_.buffer_bytes_max;
}

Backlog::Batch Backlog::take(MonoTime now, int worker) {
  Batch batch;
  std::int64_t bytes = 0;
  auto at = queues_.upper_bound(last_served_[worker]);
  for (std::size_t turn = 0; turn < queues_.size(); ++turn, ++at) {
    if (at == queues_.end()) at = queues_.begin();
    auto& [id, queue] = *at;
    if (queue.worker != worker || queue.at_work || queue.retired || queue.records.empty() ||
        (queue.due && *queue.due > now))
      continue;
    const bool alone = queue.records.front().record.attempt > 1;
    if (alone && !batch.empty()) continue;
    take_from(id, queue, batch, bytes);
    last_served_[worker] = id;
    if (alone || bytes >= limits_.batch_bytes_max || std::ssize(batch.records) >= limits_.batch_rows_max)
      break;
  }
  return batch;
}

void Backlog::take_from(const PartitionId& id, Queue& queue, Batch& batch, std::int64_t& bytes) const {
  std::size_t count = 0;
  const bool alone = queue.records.front().record.attempt > 1;
  while (!queue.records.empty() && std::ssize(batch.records) < limits_.batch_rows_max &&
         !(alone && count == 1)) {
    Fetched& next = queue.records.front();
    if (!batch.empty() && bytes + next.bytes > limits_.batch_bytes_max) break;
    bytes += next.bytes;
    queue.bytes -= next.bytes;
    batch.records.push_back(std::move(next));
    queue.records.pop_front();
    ++count;
  }
  if (count == 0) return;
  queue.at_work = true;
  batch.slices.push_back({id, queue.tenure, count});
}

void Backlog::finish(Batch batch, std::span<const Outcome> outcomes, MonoTime now) {
  OUTBOX_CHECK(outcomes.size() == batch.records.size(), "every record of a batch has an outcome");
  std::size_t at = 0;
  for (const auto& slice : batch.slices) {
    const auto records = std::span(batch.records).subspan(at, slice.count);
    const auto results = outcomes.subspan(at, slice.count);
    at += slice.count;
    const auto found = queues_.find(slice.partition);
    if (found == queues_.end() || found->second.tenure != slice.tenure) continue;
    found->second.at_work = false;
    put_back(found->second, records, results, now);
  }
}

void Backlog::put_back(Queue& queue, std::span<Fetched> records, std::span<const Outcome> outcomes,
                       MonoTime now) {
  const auto stop = std::ranges::find_if_not(outcomes, &Outcome::settled);
  const auto done = static_cast<std::size_t>(stop - outcomes.begin());
  if (done > 0) {
    queue.commit = queue.next = records[done - 1].record.offset + 1;
    queue.backoff.reset();
  }
  queue.due.reset();
  if (stop == outcomes.end()) return;
  if (stop->fate == Fate::failed) ++records[done].record.attempt;
  queue.due = now + std::max(queue.backoff.next(), stop->retry_wait);
  for (std::size_t i = records.size(); i > done; --i) {
    queue.bytes += records[i - 1].bytes;
    queue.records.push_front(std::move(records[i - 1]));
  }
}

bool Backlog::at_work(const PartitionId& partition) const {
  const auto found = queues_.find(partition);
  return found != queues_.end() && found->second.at_work;
}

std::vector<PartitionId> Backlog::assigned() const {
  std::vector<PartitionId> out;
  for (const auto& [id, queue] : queues_) out.push_back(id);
  return out;
}

std::vector<PartitionId> Backlog::waiting() const {
  std::vector<PartitionId> out;
  for (const auto& [id, queue] : queues_)
    if (queue.due) out.push_back(id);
  return out;
}

std::optional<MonoTime> Backlog::next_due(int worker) const {
  std::optional<MonoTime> out;
  for (const auto& [id, queue] : queues_)
    if (queue.worker == worker && queue.due && !queue.at_work && !queue.retired &&
        (!out || *queue.due < *out))
      out = queue.due;
  return out;
}

std::vector<NextOffset> Backlog::positions() const {
  std::vector<NextOffset> out;
  for (const auto& [id, queue] : queues_)
    if (queue.next) out.push_back({id, *queue.next});
  return out;
}

std::vector<NextOffset> Backlog::take_commits() {
  std::vector<NextOffset> out;
  for (auto& [id, queue] : queues_)
    if (queue.commit) out.push_back({id, *std::exchange(queue.commit, std::nullopt)});
  return out;
}

}  // namespace outbox
