#pragma once
// Whether what dedup remembers exceeds everything that can delay or repeat a message. A message can come
// again for as long as Kafka has it, which is retention.ms and then up to segment.ms, since whole segments
// are deleted; and its id can be older than its record by what it waited in the outbox. Pure; any thread.

#include <chrono>
#include <optional>
#include <string>

namespace outbox {

/// A topic's configuration, as DescribeConfigs tells it.
struct TopicRetention {
  std::string topic;
  std::chrono::milliseconds retention{};  ///< retention.ms; -1: no limit of time
  std::chrono::milliseconds segment{};    ///< segment.ms
  bool compacted = false;                 ///< cleanup.policy has compact
};

/// Shape: for people, with the figures: why a horizon is too short for a topic; nullopt where it is not.
[[nodiscard]] std::optional<std::string> horizon_fault(const TopicRetention& topic,
                                                       std::chrono::hours horizon,
                                                       std::chrono::hours publish_delay_max);

}  // namespace outbox
