#pragma once
// How long a cluster keeps the messages of topics, asked once by a client of its own that joins no group.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "consumer/core/horizon.hpp"

namespace outbox {

struct RetentionAnswer {
  std::vector<TopicRetention> topics;
  std::vector<std::string> untold;  ///< not there yet, or a cluster in reach does not answer (a mock)
};

/// Shape: every topic is in one of the two lists. `properties` are those of the consumer.
/// Errors: retry: the cluster did not answer; fatal: it won't tell (no privilege to describe
/// configurations). Blocks: up to 15 s. Source: KIP-133.
[[nodiscard]] Result<RetentionAnswer> read_retention(const std::map<std::string, std::string>& properties,
                                                     std::span<const std::string> topics);

}  // namespace outbox
