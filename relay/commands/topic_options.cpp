#include "relay/commands/topic_options.hpp"

#include <string_view>

#include "relay/core/lanes/ledger.hpp"

namespace outbox::commands {
namespace {

std::string trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(' ');
  if (from == std::string_view::npos) return {};
  return std::string(text.substr(from, text.find_last_not_of(' ') - from + 1));
}

}  // namespace

Result<relay::TopicMap> topic_map(const config::Topics& topics) {
  return relay::TopicMap::make({.allow = topics.allow, .prefix = topics.prefix, .rewrite = topics.rewrite});
}

std::string ledger_topic(const config::Pipeline& pipeline) {
  return pipeline.ledger.topic.empty() ? relay::ledger_topic_of(pipeline.name) : pipeline.ledger.topic;
}

Result<std::optional<relay::TopicCreation>> topic_creation(const config::Topics& topics) {
  relay::TopicCreation out{topics.create_partitions, topics.create_replication, {}};
  std::string_view left = topics.create_configs;
  while (!left.empty()) {
    const auto comma = left.find(',');
    const std::string_view entry = left.substr(0, comma);
    left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
    const auto sign = entry.find('=');
    const std::string name = trimmed(entry.substr(0, sign));
    if (sign == std::string_view::npos || name.empty())
      return failure(Disposition::fatal, "`" + trimmed(entry) + "` is no name=value");
    out.configs[name] = trimmed(entry.substr(sign + 1));
  }
  if (topics.create == config::CreateTopics::off) return std::optional<relay::TopicCreation>{};
  return std::optional{std::move(out)};
}

}  // namespace outbox::commands
