#include "relay/check/topic_settings.hpp"

#include <charconv>

namespace outbox::relay {
namespace {

void leaders(const TopicConfigFacts& topic, const std::string& named, const std::string& without_leader,
             Findings& out) {
  if (topic.leaderless > 0)
    out.push_back({"kafka.leaders", Severity::warning,
                   named + std::to_string(topic.leaderless) + " partitions have no leader",
                   "bring their brokers back; " + without_leader});
}

void replicas(const TopicConfigFacts& topic, const std::string& named, Findings& out) {
  const auto warn = [&](const std::string& found, const char* advice) {
    out.push_back({"kafka.replicas", Severity::warning, named + found, advice});
  };
  if (topic.replicas == 1)
    return warn("one replica: a lost disk loses acknowledged messages",
                "three replicas, min.insync.replicas=2");
  const auto in_sync = setting_number(topic, "min.insync.replicas");
  if (!in_sync) return;
  if (*in_sync < 2)
    warn("min.insync.replicas is 1: with the others down, acks=all means one disk",
         "set min.insync.replicas=2");
  else if (*in_sync >= topic.replicas)
    warn("min.insync.replicas is " + std::to_string(*in_sync) + " of " + std::to_string(topic.replicas) +
             " replicas: one broker down stops the topic",
         "one replica more, or min.insync.replicas one less");
}

}  // namespace

std::string setting(const TopicConfigFacts& topic, const std::string& name) {
  const auto at = topic.config.find(name);
  return at == topic.config.end() ? "" : at->second;
}

std::optional<std::int64_t> setting_number(const TopicConfigFacts& topic, const std::string& name) {
  const std::string text = setting(topic, name);
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

void judge_durability(const TopicConfigFacts& topic, const std::string& named,
                      const std::string& without_leader, Findings& out) {
  const std::string begin = "topic " + named + ": ";
  leaders(topic, begin, without_leader, out);
  replicas(topic, begin, out);
  if (setting(topic, "unclean.leader.election.enable") == "true")
    out.push_back({"kafka.unclean_election", Severity::warning,
                   begin +
                       "unclean.leader.election.enable is true: a broker that lags can become leader, and "
                       "acknowledged messages go",
                   "set it to false"});
  if (topic.config.empty())
    out.push_back({"kafka.topic_config", Severity::note, begin + "its settings cannot be read",
                   "grant DESCRIBE_CONFIGS on the topic"});
}

}  // namespace outbox::relay
