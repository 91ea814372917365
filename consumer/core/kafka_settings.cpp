#include "consumer/core/kafka_settings.hpp"

#include <algorithm>

namespace outbox {
namespace {

constexpr FixedProperty fixed[] = {
    {"enable.auto.commit", "false", "an offset may move only after the database's commit"},
    {"enable.auto.offset.store", "false", "an offset may move only after the database's commit"},
    {"auto.offset.reset", "error",
     "an offset that Kafka no longer has must be seen by a person; see start_at"},
    {"isolation.level", "read_committed", "messages of an aborted Kafka transaction were never sent"},
    {"enable.partition.eof", "false", "the loop does not need it"},
    {"auto.commit.enable", "", "an offset may move only after the database's commit"},
    {"group.protocol", "", "the library's hand-over of partitions is that of the classic protocol"},
    {"plugin.library.paths", "", "it loads code"},
};

constexpr DefaultProperty defaults[] = {
    {"partition.assignment.strategy", "cooperative-sticky"},
    {"session.timeout.ms", "6000"},  // a killed member is missed for this long
    {"heartbeat.interval.ms", "2000"},
    {"queued.max.messages.kbytes", "16384"},  // memory: this much in librdkafka, buffer_bytes_max with us
    {"queued.min.messages", "10000"},
    {"fetch.wait.max.ms", "100"},
    {"allow.auto.create.topics", "false"},            // a mistyped topic is an error
    {"topic.metadata.refresh.interval.ms", "60000"},  // added partitions are seen within it
};

constexpr std::string_view secret_words[] = {"password", "secret", "key.pem", "ssl_key",
                                             "oauthbearer.config"};

}  // namespace

std::span<const FixedProperty> fixed_properties() {
  return fixed;
}

std::span<const DefaultProperty> default_properties() {
  return defaults;
}

bool secret_property(std::string_view property) {
  return std::ranges::any_of(secret_words, [&](std::string_view word) { return property.ends_with(word); });
}

KafkaSettings kafka_settings(const std::map<std::string, std::string>& given, const std::string& name) {
  KafkaSettings out;
  out.properties["group.id"] = name;
  out.properties["client.id"] = "outbox-" + name;
  for (const auto& [property, value] : defaults) out.properties[std::string(property)] = value;
  for (const auto& [property, value] : given) out.properties[property] = value;
  for (const auto& rule : fixed) {
    const auto found = given.find(std::string(rule.property));
    if (found != given.end() && (rule.value.empty() || found->second != rule.value))
      out.refused.push_back({std::string(rule.property), "refused, since " + std::string(rule.why)});
    if (!rule.value.empty()) out.properties[std::string(rule.property)] = rule.value;
  }
  if (out.properties["bootstrap.servers"].empty()) out.refused.push_back({"bootstrap.servers", "is missing"});
  if (out.properties["group.id"].empty()) out.refused.push_back({"group.id", "is empty"});
  return out;
}

}  // namespace outbox
