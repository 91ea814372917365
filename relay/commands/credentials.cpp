#include "relay/commands/credentials.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>

#include "pg/session.hpp"
#include "relay/config/load.hpp"
#include "relay/config/options.hpp"
#include "relay/core/kafka/properties.hpp"

namespace outbox::commands {
namespace {

using config::Pipeline;
using Properties = std::map<std::string, std::string>;

std::string option(const Pipeline& pipeline, const std::string& name) {
  return config::pipeline_path(pipeline.name) + "." + name;
}

bool same(const Properties& one, const Properties& other, const std::string& property) {
  const auto a = one.find(property);
  const auto b = other.find(property);
  if (a == one.end() || b == other.end()) return a == one.end() && b == other.end();
  return a->second == b->second;
}

void take(Pipeline& running, const Pipeline& read, std::vector<std::string>& changed) {
  if (pg::differ_in_credentials_alone(running.postgres.uri, read.postgres.uri)) {
    running.postgres.uri = read.postgres.uri;
    changed.push_back(option(running, "postgres.uri"));
  }
  Properties all = running.kafka;
  all.insert(read.kafka.begin(), read.kafka.end());
  for (const auto& [property, value] : all) {
    if (!relay::credential_property(property) || same(running.kafka, read.kafka, property)) continue;
    running.kafka.erase(property);
    if (const auto now = read.kafka.find(property); now != read.kafka.end()) running.kafka.insert(*now);
    changed.push_back(option(running, std::string{config::kafka_section} + "." + property));
  }
}

}  // namespace

std::vector<std::string> take_credentials(config::Config& running, const config::Config& read) {
  std::vector<std::string> changed;
  for (Pipeline& pipeline : running.pipelines) {
    const auto same_name = std::ranges::find(read.pipelines, pipeline.name, &Pipeline::name);
    if (same_name != read.pipelines.end()) take(pipeline, *same_name, changed);
  }
  return changed;
}

std::size_t digest_of_files(const Properties& kafka) {
  std::string all;
  for (const auto& [property, file] : kafka) {
    if (!relay::credential_file_property(property)) continue;
    std::ifstream in(file, std::ios::binary);
    all.append(property).append(1, '\0').append(std::istreambuf_iterator<char>{in}, {}).append(1, '\0');
  }
  return std::hash<std::string>{}(all);
}

}  // namespace outbox::commands
