#include "fake_subscription.hpp"

#include <utility>

namespace outbox::test {

FakeKafka::FakeKafka(std::string topic, int partitions)
    : topic_(std::move(topic)), logs_(static_cast<std::size_t>(partitions)) {}

void FakeKafka::send(Letter letter) {
  const std::lock_guard lock(mutex_);
  auto& log = logs_.at(static_cast<std::size_t>(letter.partition));
  letter.topic = topic_;
  letter.offset = static_cast<std::int64_t>(log.size());
  log.push_back(std::move(letter));
  sent_.notify_all();
}

std::vector<NextOffset> FakeKafka::commits() const {
  const std::lock_guard lock(mutex_);
  return commits_;
}

std::int64_t FakeKafka::committed(std::int32_t partition) const {
  std::int64_t last = -1;
  for (const auto& one : commits())
    if (one.partition.partition == partition) last = one.next;
  return last;
}

void FakeSubscription::start(Events events) {
  events_ = std::move(events);
  for (std::int32_t p = 0; p < std::ssize(kafka_.logs_); ++p) to_assign_.push_back({kafka_.topic_, p});
}

void FakeSubscription::assign(std::vector<PartitionId> partitions) {
  const auto known = events_.starts ? events_.starts(partitions).value() : Starts{};
  for (const auto& id : partitions)
    positions_[id] =
        known.contains(id) ? known.at(id) : std::max<std::int64_t>(0, kafka_.committed(id.partition));
  events_.on_assigned(partitions);
}

Result<std::optional<Fetched>> FakeSubscription::poll(Millis timeout) {
  if (!to_assign_.empty()) assign(std::exchange(to_assign_, {}));
  std::unique_lock lock(kafka_.mutex_);
  ++polls_;
  if (const auto taken = std::exchange(to_revoke_, std::nullopt)) {
    lock.unlock();
    events_.on_revoked({&taken->first, 1}, taken->second);
    positions_.erase(taken->first);
    to_assign_.push_back(taken->first);
    return std::nullopt;
  }
  if (auto record = next_record()) return record;
  kafka_.sent_.wait_for(lock, timeout);
  return next_record();
}

std::optional<Fetched> FakeSubscription::next_record() {
  for (auto& [id, position] : positions_) {
    const auto& log = kafka_.logs_[static_cast<std::size_t>(id.partition)];
    if (paused_.contains(id) || position >= std::ssize(log)) continue;
    ++fetched_;
    return test::fetched(log[static_cast<std::size_t>(position++)]);
  }
  return std::nullopt;
}

void FakeSubscription::pause(std::span<const PartitionId> partitions) {
  const std::lock_guard lock(kafka_.mutex_);
  paused_.insert(partitions.begin(), partitions.end());
}

void FakeSubscription::resume(std::span<const PartitionId> partitions) {
  const std::lock_guard lock(kafka_.mutex_);
  for (const auto& id : partitions) paused_.erase(id);
}

std::optional<std::int64_t> FakeSubscription::end_of(const PartitionId& partition) {
  const std::lock_guard lock(kafka_.mutex_);
  return std::ssize(kafka_.logs_[static_cast<std::size_t>(partition.partition)]);
}

Status FakeSubscription::commit(std::span<const NextOffset> offsets, Commit) {
  const std::lock_guard lock(kafka_.mutex_);
  kafka_.commits_.insert(kafka_.commits_.end(), offsets.begin(), offsets.end());
  return {};
}

void FakeSubscription::rejoin() {
  std::vector<PartitionId> all;
  for (const auto& [id, position] : positions_) all.push_back(id);
  if (!all.empty()) events_.on_revoked(all, Revoked::handed_over);
  positions_.clear();
  to_assign_ = std::move(all);
}

void FakeSubscription::close() {
  std::vector<PartitionId> all;
  for (const auto& [id, position] : positions_) all.push_back(id);
  if (!all.empty()) events_.on_revoked(all, Revoked::handed_over);
  positions_.clear();
}

void FakeSubscription::revoke(std::int32_t partition, Revoked how) {
  const std::lock_guard lock(kafka_.mutex_);
  to_revoke_ = {{kafka_.topic_, partition}, how};
  kafka_.sent_.notify_all();
}

std::int64_t FakeSubscription::polls() const {
  const std::lock_guard lock(kafka_.mutex_);
  return polls_;
}
std::set<PartitionId> FakeSubscription::paused() const {
  const std::lock_guard lock(kafka_.mutex_);
  return paused_;
}
std::int64_t FakeSubscription::fetched() const {
  const std::lock_guard lock(kafka_.mutex_);
  return fetched_;
}

}  // namespace outbox::test
