#pragma once
// What a cluster says of itself and of some topics, for `outboxd check`. Reading them blocks: never on the
// loop.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "relay/core/kafka/access.hpp"
#include "relay/core/types.hpp"
#include "relay/kafka/options.hpp"

namespace outbox::relay {

struct TopicConfigFacts {
  std::string topic{};
  TopicState state = TopicState::present;
  std::string reason{};  ///< for missing and forbidden
  std::int32_t partitions = 0;
  std::int32_t replicas = 0;    ///< of the partition that has fewest
  std::int32_t leaderless = 0;  ///< partitions without a leader
  /// "retention.ms" and the like; empty where the cluster does not say (no DESCRIBE_CONFIGS right).
  std::map<std::string, std::string> config{};
};

struct ClusterFacts {
  std::int32_t brokers = 0;
  std::vector<TopicConfigFacts> topics{};
  /// Who may write and read which topics. nullopt: the cluster tells no rule, since it has no access control,
  /// or since this client lacks DESCRIBE on it; librdkafka (2.0.2 and 2.16.1 tried) drops the error that says
  /// which.
  std::optional<std::vector<AccessRule>> access{};
};

/// Shape: asks with a producer of its own, made of the operator's properties; creates no topic.
/// Errors: fatal: properties that are refused; retry: no answer within `patience`, with librdkafka's reason.
[[nodiscard]] Result<ClusterFacts> read_cluster_facts(const KafkaOptions& options,
                                                      const std::vector<std::string>& topics,
                                                      Millis patience);

}  // namespace outbox::relay
