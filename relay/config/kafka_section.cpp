#include "relay/config/kafka_section.hpp"

#include "options/suggest.hpp"
#include "relay/core/kafka/properties.hpp"

namespace outbox::config {
namespace {

void read_property(SectionReader& reader, const YamlEntry& entry, const std::string& where,
                   Pipeline& pipeline, Origins& origins) {
  const std::string path = joined(where, "kafka." + entry.key);
  if (entry.value.kind == YamlNode::Kind::map) {
    reader.fault(entry.place, path,
                 "must be a single value: librdkafka's names are written with dots, as in `" +
                     std::string(kafka_servers) + ":`");
    return;
  }
  const bool secret = relay::secret_property(entry.key);
  const auto value =
      reader.scalar(entry.value, path, secret ? MayNameFile::yes : MayNameFile::no, "a single value");
  if (!value) return;
  if (const auto reason = relay::refused_because(entry.key, value->text)) {
    reader.fault(entry.place, path,
                 (secret ? "" : shown(entry.value.text) + " ") + "is refused: " + std::string(*reason));
    return;
  }
  pipeline.kafka[entry.key] = value->text;
  origins["kafka." + entry.key] = {entry.value.place, value->from};
}

void require_servers(SectionReader& reader, const YamlNode& kafka, Place place, const std::string& where) {
  const YamlEntry* servers = find(kafka, kafka_servers);
  const std::string path = joined(where, "kafka." + std::string(kafka_servers));
  if (servers && servers->value.kind == YamlNode::Kind::scalar && servers->value.text.empty()) {
    reader.fault(servers->value.place, path, "is empty: write HOST:PORT, several with commas");
  }
  if (servers) return;
  std::string message = "is missing";
  for (const YamlEntry& entry : kafka.entries) {
    const std::string_view wanted[] = {kafka_servers};
    if (closest(entry.key, wanted)) message += ": did you mean it by `" + entry.key + "`?";
  }
  reader.fault(place, path, message);
}

}  // namespace

void read_kafka(SectionReader& reader, const YamlNode& map, const std::string& where, Pipeline& pipeline,
                Origins& origins) {
  static const YamlNode nothing;
  const YamlEntry* entry = find(map, kafka_section);
  const YamlNode& kafka = entry ? entry->value : nothing;
  if (kafka.kind == YamlNode::Kind::scalar || kafka.kind == YamlNode::Kind::list) {
    reader.fault(kafka.place, joined(where, kafka_section),
                 "must be a mapping, not " + std::string(to_string(kafka.kind)));
    return;
  }
  for (const YamlEntry& property : kafka.entries) read_property(reader, property, where, pipeline, origins);
  require_servers(reader, kafka, entry ? entry->place : map.place, where);
}

}  // namespace outbox::config
