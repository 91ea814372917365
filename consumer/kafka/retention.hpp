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
  std::vector<TopicRetention> topics{};
  std::vector<std::string> missing{};  ///< not there yet
  bool silent = false;                 ///< the cluster is in reach and did not answer: nothing else is told
};

/// Shape: every topic is in one of the two lists. `properties` are those of the consumer.
/// Errors: retry: the cluster is away; fatal: it won't tell (no privilege to describe configurations, or a
/// cluster that knows no such request). Blocks: up to 10 s. Source: KIP-133.
[[nodiscard]] Result<RetentionAnswer> read_retention(const std::map<std::string, std::string>& properties,
                                                     std::span<const std::string> topics);

}  // namespace outbox
