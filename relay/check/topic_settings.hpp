#pragma once
// What the rules about topics have in common: reading a setting, and what every topic must have whose records
// may not be lost. Pure; for the sources of this folder only.

#include <cstdint>
#include <optional>
#include <string>

#include "relay/check/finding.hpp"
#include "relay/kafka/cluster_facts.hpp"

namespace outbox::relay {

/// Empty: not told.
[[nodiscard]] std::string setting(const TopicConfigFacts& topic, const std::string& name);
/// nullopt: not told, or no number.
[[nodiscard]] std::optional<std::int64_t> setting_number(const TopicConfigFacts& topic,
                                                         const std::string& name);

/// Appends what is wrong with leaders, replicas and elections of a topic that is present. `named`: as the
/// finding calls it; `without_leader`: what follows for partitions that have none.
void judge_durability(const TopicConfigFacts& topic, const std::string& named,
                      const std::string& without_leader, Findings& out);

}  // namespace outbox::relay
