#pragma once
// A Subscription by librdkafka: group membership with either rebalance protocol, offsets in the group's
// coordinator.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "consumer/subscription.hpp"
#include "outbox/consumer.hpp"

namespace outbox {

struct KafkaSubscriptionOptions {
  std::map<std::string, std::string> properties;  ///< complete; see core/kafka_settings.hpp
  std::vector<std::string> topics;
  StartAt start_at = StartAt::beginning;
};

/// Errors: librdkafka does not know a property or its value: fatal.
[[nodiscard]] Result<std::unique_ptr<Subscription>> subscribe_kafka(KafkaSubscriptionOptions options);

}  // namespace outbox
