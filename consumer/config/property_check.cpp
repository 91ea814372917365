#include "consumer/config/property_check.hpp"

#include <string_view>
#include <vector>

#include "consumer/kafka/handles.hpp"
#include "options/suggest.hpp"

namespace outbox::config {
namespace {

std::optional<std::string> meant(const rd_kafka_conf_t* conf, const std::string& property) {
  std::size_t count = 0;
  const char** all = rd_kafka_conf_dump(const_cast<rd_kafka_conf_t*>(conf), &count);
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < count; i += 2) names.emplace_back(all[i]);
  const auto found = closest(property, names);
  std::optional<std::string> out;
  if (found) out = std::string(*found);
  rd_kafka_conf_dump_free(all, count);
  return out;
}

}  // namespace

std::optional<std::string> property_fault(const std::string& property, const std::string& value) {
  const KafkaConf conf{rd_kafka_conf_new()};
  char reason[512];
  switch (rd_kafka_conf_set(conf.get(), property.c_str(), value.c_str(), reason, sizeof reason)) {
    case RD_KAFKA_CONF_OK:
      return std::nullopt;
    case RD_KAFKA_CONF_UNKNOWN: {
      const auto name = meant(conf.get(), property);
      return "is no property of librdkafka" + (name ? "; did you mean `" + *name + "`?" : std::string());
    }
    case RD_KAFKA_CONF_INVALID:
      break;
  }
  return "has a value that librdkafka does not take: see its CONFIGURATION.md";
}

}  // namespace outbox::config
