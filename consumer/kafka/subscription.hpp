#pragma once
// A Subscription by librdkafka: group membership with either rebalance protocol, offsets in the group's
// coordinator.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "consumer/core/subscription.hpp"
#include "outbox/consumer.hpp"

namespace outbox {

struct KafkaSubscriptionOptions {
  std::map<std::string, std::string> properties;  ///< complete; see core/kafka_settings.hpp
  std::vector<std::string> topics;
  StartAt start_at = StartAt::beginning;
  std::function<bool()> stopping{};  ///< an assignment that comes meanwhile is not waited for
  /// See StartRule; empty: a start at the end is remembered by Kafka alone.
  std::function<Result<std::int64_t>(const PartitionId&, std::int64_t)> remember{};
};

/// Errors: librdkafka does not know a property or its value: fatal.
[[nodiscard]] Result<std::unique_ptr<Subscription>> subscribe_kafka(KafkaSubscriptionOptions options);

}  // namespace outbox
