#include "relay/commands/value_checks.hpp"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <memory>

#include "pg/identifier.hpp"
#include "pg/session.hpp"
#include "relay/commands/topic_options.hpp"
#include "relay/core/kafka/properties.hpp"
#include "relay/http/listen_address.hpp"

namespace outbox::commands {
namespace {

using config::Fault;
using config::Faults;
using config::Loaded;
using config::Origins;
using config::Pipeline;
using config::Place;

struct DestroyConf {
  void operator()(rd_kafka_conf_t* conf) const noexcept { rd_kafka_conf_destroy(conf); }
};

Place place_of(const Origins& origins, const std::string& path) {
  const auto it = origins.find(path);
  return it == origins.end() ? Place{} : it->second.place;
}

std::string path_in(const Pipeline& pipeline, const std::string& option) {
  return config::pipeline_path(pipeline.name) + "." + option;
}

// librdkafka's own words, but for those that would show a secret's value.
void check_properties(const Pipeline& pipeline, const Origins& origins, Faults& faults) {
  const std::unique_ptr<rd_kafka_conf_t, DestroyConf> conf(rd_kafka_conf_new());
  for (const auto& [property, value] : pipeline.kafka) {
    std::array<char, 512> why{};
    const auto result =
        rd_kafka_conf_set(conf.get(), property.c_str(), value.c_str(), why.data(), why.size());
    if (result == RD_KAFKA_CONF_OK) continue;
    const bool secret = relay::secret_property(property);
    const std::string reason =
        secret ? "librdkafka does not take this value" : "librdkafka says: " + std::string(why.data());
    faults.push_back(
        {place_of(origins, "kafka." + property), path_in(pipeline, "kafka." + property), reason});
  }
}

void check_topics(const Pipeline& pipeline, const Origins& origins, Faults& faults) {
  const auto wrong = [&](const std::string& option, const Error& error) {
    faults.push_back({place_of(origins, option), path_in(pipeline, option), error.text()});
  };
  const config::Topics& topics = pipeline.topics;
  if (const auto ok = relay::TopicMap::make({.allow = topics.allow}); !ok) wrong("topics.allow", ok.error());
  if (const auto ok = relay::TopicMap::make({.prefix = topics.prefix}); !ok)
    wrong("topics.prefix", ok.error());
  if (const auto ok = relay::TopicMap::make({.rewrite = topics.rewrite}); !ok)
    wrong("topics.rewrite", ok.error());
  if (const auto ok = topic_creation(topics); !ok) wrong("topics.create_configs", ok.error());
}

void check_partition_column(const Pipeline& pipeline, const Origins& origins, Faults& faults) {
  const std::string option = "source.partition_column";
  const std::string& column = pipeline.source.partition_column;
  if (column.empty()) return;
  if (const auto name = pg::parse_name(column); !name)
    faults.push_back({place_of(origins, option), path_in(pipeline, option), name.error().text()});
  if (!pipeline.publish.partition_header.empty())
    faults.push_back({place_of(origins, option), path_in(pipeline, option),
                      "publish.partition_header names a row's partition as well; keep one of the two"});
}

void check_pipeline(const Pipeline& pipeline, const Origins& origins, Faults& faults) {
  if (const auto table = pg::parse_table_name(pipeline.source.table); !table) {
    faults.push_back(
        {place_of(origins, "source.table"), path_in(pipeline, "source.table"), table.error().text()});
  }
  check_partition_column(pipeline, origins, faults);
  pg::ConnectOptions connect;
  connect.uri = pipeline.postgres.uri;
  if (const auto keywords = pg::connection_keywords(connect); !keywords) {
    faults.push_back(
        {place_of(origins, "postgres.uri"), path_in(pipeline, "postgres.uri"), keywords.error().text()});
  }
  if (pipeline.delivery == config::Delivery::exactly_once && pipeline.publish.max_attempts > 0) {
    const std::string option = "publish.max_attempts";
    faults.push_back({place_of(origins, option), path_in(pipeline, option),
                      "attempts are not counted with delivery: exactly_once; leave it out"});
  }
  check_topics(pipeline, origins, faults);
  check_properties(pipeline, origins, faults);
}

}  // namespace

Faults value_faults(const Loaded& loaded) {
  Faults faults;
  if (const auto listen = relay::parse_listen_address(loaded.config.admin.listen); !listen)
    faults.push_back({place_of(loaded.process, "admin.listen"), "admin.listen", listen.error().text()});
  for (std::size_t i = 0; i < loaded.config.pipelines.size(); ++i) {
    check_pipeline(loaded.config.pipelines[i], loaded.pipelines[i], faults);
  }
  std::ranges::stable_sort(faults, {}, &Fault::place);
  return faults;
}

}  // namespace outbox::commands
