#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "consumer/config/options.hpp"
#include "consumer/config/property_check.hpp"
#include "consumer/core/kafka_settings.hpp"
#include "options/section.hpp"
#include "outbox/config.hpp"

namespace outbox {
namespace config {
namespace {

std::string below(std::string_view key) {
  return joined(std::string(consumer_section), key);
}

/// A list of texts; nullopt: the key is not there, or a fault was noted.
std::optional<std::vector<std::string>> read_list(SectionReader& reader, const YamlNode& section,
                                                  const ListFacts& facts) {
  const YamlEntry* entry = find(section, facts.key);
  if (!entry) return std::nullopt;
  const std::string path = below(facts.key);
  if (entry->value.kind != YamlNode::Kind::list || entry->value.nodes.empty()) {
    reader.fault(entry->value.place, path, "must be a list, such as " + std::string(facts.example));
    return std::nullopt;
  }
  std::vector<std::string> out;
  for (const YamlNode& node : entry->value.nodes) {
    const auto text = reader.scalar(node, path, MayNameFile::no, "text");
    if (!text) return std::nullopt;
    out.push_back(text->text);
  }
  return out;
}

void read_topics(SectionReader& reader, const YamlNode& section, ConsumerOptions& options) {
  if (!find(section, topics_list.key))
    return reader.fault(section.place, below(topics_list.key),
                        "is missing: a list, such as " + std::string(topics_list.example));
  if (auto topics = read_list(reader, section, topics_list)) options.topics = *std::move(topics);
}

void read_id(SectionReader& reader, const YamlNode& section, ConsumerOptions& options) {
  const auto pointers = read_list(reader, section, id_list);
  if (!pointers) return;
  try {
    options.id_of = id_from_json(*pointers);
  } catch (const std::invalid_argument&) {
    reader.fault(find(section, id_list.key)->place, below(id_list.key),
                 "holds what is no JSON pointer: write " + std::string(id_list.example));
  }
}

void read_property(SectionReader& reader, const YamlEntry& entry, ConsumerOptions& options) {
  const std::string path = below("kafka." + entry.key);
  const auto secret = secret_property(entry.key) ? MayNameFile::yes : MayNameFile::no;
  const auto value = reader.scalar(entry.value, path, secret, "a single value");
  if (!value) return;
  if (const auto fault = property_fault(entry.key, value->text))
    return reader.fault(entry.place, path, *fault);
  options.kafka[entry.key] = value->text;
}

void read_kafka(SectionReader& reader, const YamlNode& section, ConsumerOptions& options) {
  const YamlEntry* entry = find(section, kafka_map.key);
  if (entry && entry->value.kind != YamlNode::Kind::map)
    return reader.fault(entry->value.place, below(kafka_map.key),
                        "must be a mapping, such as " + std::string(kafka_map.example));
  if (entry)
    for (const YamlEntry& property : entry->value.entries) read_property(reader, property, options);
  for (const auto& [property, why] : kafka_settings(options.kafka, options.name).refused) {
    if (property == "group.id" && options.name.empty()) continue;  // the name's own fault is told
    const YamlEntry* at = entry ? find(entry->value, property) : nullptr;
    reader.fault(at ? at->place : entry ? entry->place : section.place, below("kafka." + property), why);
  }
}

// What no single option can see.
void check_together(SectionReader& reader, const Origins& origins, const YamlNode& section,
                    const ConsumerOptions& options) {
  const auto place = [&](const char* option) {
    const auto found = origins.find(option);
    return found == origins.end() ? section.place : found->second.place;
  };
  if (options.buffer_bytes_max < options.batch_bytes_max)
    reader.fault(place("buffer_bytes_max"), below("buffer_bytes_max"), "is less than batch_bytes_max");
  if (options.offsets == Offsets::database && options.order == Order::key)
    reader.fault(place("offsets"), below("offsets"), "in the database need `order: partition`");
  if (options.backoff_max < options.backoff_initial)
    reader.fault(place("backoff_max"), below("backoff_max"), "is less than backoff_initial");
}

ConsumerOptions read_section(SectionReader& reader, const YamlNode& section) {
  ConsumerOptions options;
  const auto origins =
      reader.read(level_of(consumer_options(), options, {topics_list.key, id_list.key, kafka_map.key},
                           std::string(consumer_section)),
                  section);
  read_topics(reader, section, options);
  read_id(reader, section, options);
  read_kafka(reader, section, options);
  check_together(reader, origins, section, options);
  return options;
}

ConsumerOptions read_document(const std::string& yaml, Faults& faults) {
  YamlDocument document = parse_yaml(yaml);
  faults = std::move(document.faults);
  SectionReader reader(process_surroundings(), faults);
  const YamlEntry* section = find(document.root, consumer_section);
  if (section && section->value.kind == YamlNode::Kind::map) return read_section(reader, section->value);
  if (section)
    reader.fault(section->place, std::string(consumer_section), "must be a mapping");
  else if (faults.empty())
    reader.fault({}, std::string(consumer_section), "is missing: the options stand below `consumer:`");
  return {};
}

}  // namespace
}  // namespace config

ConsumerOptions parse_consumer_options(const std::string& yaml, const std::string& file) {
  config::Faults faults;
  auto options = config::read_document(yaml, faults);
  if (faults.empty()) return options;
  std::ranges::stable_sort(faults, {}, &config::Fault::place);
  std::string all;
  for (const auto& fault : faults) all.append(all.empty() ? "" : "\n").append(fault.text(file));
  throw ConfigError(all);
}

ConsumerOptions load_consumer_options(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(config::yaml_bytes_max + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.eof()) throw ConfigError(file + ": cannot be read: " + std::strerror(errno ? errno : EFBIG));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return parse_consumer_options(text, file);
}

}  // namespace outbox
