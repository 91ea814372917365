#pragma once
// A working stand-in for Kafka: partitions and committed offsets in memory, and one member at a time that has
// them all. Any thread may send and ask for a revocation; the rest is as Subscription says.

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "consumer/core/subscription.hpp"
#include "letters.hpp"

namespace outbox::test {

class FakeKafka {
 public:
  FakeKafka(std::string topic, int partitions);
  void send(Letter letter);
  /// Every offset that was ever committed, in order.
  [[nodiscard]] std::vector<NextOffset> commits() const;
  [[nodiscard]] std::int64_t committed(std::int32_t partition) const;

 private:
  friend class FakeSubscription;
  mutable std::mutex mutex_;
  std::condition_variable sent_;
  std::string topic_;
  std::vector<std::vector<Letter>> logs_;
  std::vector<NextOffset> commits_;
};

class FakeSubscription final : public Subscription {
 public:
  explicit FakeSubscription(FakeKafka& kafka) : kafka_(kafka) {}

  void start(Events events) override;
  Result<std::optional<Fetched>> poll(Millis timeout) override;
  void pause(std::span<const PartitionId> partitions) override;
  void resume(std::span<const PartitionId> partitions) override;
  std::optional<std::int64_t> end_of(const PartitionId& partition) override;
  Status commit(std::span<const NextOffset> offsets, Commit when) override;
  void rejoin() override;
  void close() override;

  /// Takes a partition away at the next poll, and gives it back at the one after that.
  void revoke(std::int32_t partition, Revoked how);
  [[nodiscard]] std::int64_t polls() const;
  [[nodiscard]] std::set<PartitionId> paused() const;
  [[nodiscard]] std::int64_t fetched() const;

 private:
  void assign(std::vector<PartitionId> partitions);
  [[nodiscard]] std::optional<Fetched> next_record();

  FakeKafka& kafka_;
  Events events_;
  std::map<PartitionId, std::int64_t> positions_;  // the member's own
  std::vector<PartitionId> to_assign_;
  std::optional<std::pair<PartitionId, Revoked>> to_revoke_;  // the rest: under the mutex of kafka_
  std::set<PartitionId> paused_;
  std::int64_t polls_ = 0;
  std::int64_t fetched_ = 0;
};

}  // namespace outbox::test
