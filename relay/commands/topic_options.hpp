#pragma once
// The `topics` section as the relay takes it. Pure.

#include <optional>

#include "base/result.hpp"
#include "relay/config/config.hpp"
#include "relay/core/message/topic_map.hpp"
#include "relay/kafka/options.hpp"

namespace outbox::commands {

/// Errors: fatal: which entry is wrong.
[[nodiscard]] Result<relay::TopicMap> topic_map(const config::Topics& topics);
/// The topic of the pipeline's ledger, also where it keeps none: `delivery` may have been another before.
[[nodiscard]] std::string ledger_topic(const config::Pipeline& pipeline);
/// nullopt: missing topics are not made. Errors: fatal: an entry of create_configs is no `name=value`.
[[nodiscard]] Result<std::optional<relay::TopicCreation>> topic_creation(const config::Topics& topics);

}  // namespace outbox::commands
