#pragma once
// A cluster as the oracle sees it: topics with partitions, each a log. Only what is appended here is in
// Kafka.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "relay/core/types.hpp"

namespace outbox::test {

struct KafkaRecord {
  relay::RowId id;
  Uuid msg_id;
  std::optional<std::string> key;
  std::optional<std::string> body;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  std::uint64_t appended = 0;  ///< of the whole cluster: which came first
};

/// A message as a log keeps it.
[[nodiscard]] KafkaRecord record_of(const relay::Message& message);

struct KafkaTopic {
  std::int32_t partitions = 1;
  std::int64_t message_bytes_max = 1'048'588;   ///< as DescribeConfigs tells it
  std::int64_t message_bytes_real = 1'048'588;  ///< what the broker really takes: a lower one is a surprise
  bool refuses_transactions = false;            ///< as a whole, and without saying for which of its topics
  std::map<std::int32_t, std::vector<KafkaRecord>> logs;
};

class FakeKafka {
 public:
  KafkaTopic& create(const std::string& name, std::int32_t partitions) {
    KafkaTopic& topic = topics_[name];
    topic.partitions = partitions;
    return topic;
  }
  void remove(const std::string& name) { topics_.erase(name); }
  [[nodiscard]] KafkaTopic* find(const std::string& name) {
    const auto at = topics_.find(name);
    return at == topics_.end() ? nullptr : &at->second;
  }
  [[nodiscard]] const std::map<std::string, KafkaTopic>& topics() const { return topics_; }
  relay::Offset append(KafkaTopic& topic, relay::Partition partition, KafkaRecord record);

  MonoTime away_until{};  ///< no broker answers before
  /// The partition has no leader before: topic and number.
  std::map<std::pair<std::string, std::int32_t>, MonoTime> partition_away_until{};
  [[nodiscard]] MonoTime answers_from(const std::string& topic, std::int32_t partition) const {
    const auto at = partition_away_until.find({topic, partition});
    return at == partition_away_until.end() ? away_until : std::max(away_until, at->second);
  }

 private:
  std::map<std::string, KafkaTopic> topics_;
  std::uint64_t next_ = 1;
};

}  // namespace outbox::test
