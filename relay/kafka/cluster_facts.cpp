#include "relay/kafka/cluster_facts.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "relay/core/kafka/errors.hpp"
#include "relay/core/message/topic_name.hpp"
#include "relay/kafka/access_facts.hpp"
#include "relay/kafka/conf.hpp"
#include "relay/kafka/handles.hpp"

namespace outbox::relay {
namespace {

constexpr Millis event_slack{500};

Result<KafkaClient> make_client(const KafkaOptions& options) {
  auto conf = make_kafka_conf(options);
  if (!conf) return failure(conf.error());
  std::array<char, 512> why{};
  rd_kafka_conf_set(conf->get(), "log.queue", "false", why.data(), why.size());
  rd_kafka_conf_set_log_cb(conf->get(), [](const rd_kafka_t*, int, const char*, const char*) noexcept {});
  KafkaClient client{rd_kafka_new(RD_KAFKA_PRODUCER, conf->get(), why.data(), why.size())};
  if (!client) return failure(Disposition::fatal, why.data());
  static_cast<void>(conf->release());  // the client owns it now
  return client;
}

// What librdkafka met on its way: a refused password says more than "timed out".
std::string last_error(rd_kafka_t* client) {
  std::string out;
  const KafkaQueue queue{rd_kafka_queue_get_main(client)};
  for (;;) {
    const KafkaEvent event{rd_kafka_queue_poll(queue.get(), 0)};
    if (!event) return out;
    if (rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_ERROR &&
        rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
      out = rd_kafka_event_error_string(event.get());
  }
}

TopicConfigFacts facts_of(const rd_kafka_metadata_topic_t& topic) {
  TopicConfigFacts out{.topic = topic.topic, .partitions = topic.partition_cnt};
  for (int i = 0; i < topic.partition_cnt; ++i) {
    const rd_kafka_metadata_partition_t& p = topic.partitions[i];
    out.replicas = i == 0 ? p.replica_cnt : std::min(out.replicas, p.replica_cnt);
    if (p.leader < 0) out.leaderless += 1;
  }
  return out;
}

Result<TopicConfigFacts> ask_topic(rd_kafka_t* client, const std::string& name, int wait_ms) {
  TopicConfigFacts out{.topic = name};
  if (const auto fault = topic_name_fault(name)) {
    out.state = TopicState::missing;
    out.reason = *fault;
    return out;
  }
  const KafkaTopic handle{rd_kafka_topic_new(client, name.c_str(), nullptr)};
  const rd_kafka_metadata_t* raw = nullptr;
  const auto error = rd_kafka_metadata(client, 0, handle.get(), &raw, wait_ms);
  const KafkaMetadata metadata{raw};
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    return failure(Disposition::retry, "asking for topic " + name + ": " + rd_kafka_err2str(error));
  const auto said =
      metadata->topic_cnt == 1 ? metadata->topics[0].err : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  if (said == RD_KAFKA_RESP_ERR_NO_ERROR || said == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
    return facts_of(metadata->topics[0]);
  out.state =
      said == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ? TopicState::forbidden : TopicState::missing;
  out.reason = rd_kafka_err2str(said);
  return out;
}

void take_configs(const rd_kafka_event_t* event, std::vector<TopicConfigFacts>& topics) {
  std::size_t count = 0;
  const auto* result = rd_kafka_event_DescribeConfigs_result(const_cast<rd_kafka_event_t*>(event));
  const auto** resources =
      result == nullptr ? nullptr : rd_kafka_DescribeConfigs_result_resources(result, &count);
  for (std::size_t i = 0; i < count; ++i) {
    if (rd_kafka_ConfigResource_error(resources[i]) != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    const auto topic = std::ranges::find(topics, std::string_view{rd_kafka_ConfigResource_name(resources[i])},
                                         &TopicConfigFacts::topic);
    std::size_t entries = 0;
    const auto** entry = rd_kafka_ConfigResource_configs(resources[i], &entries);
    for (std::size_t e = 0; topic != topics.end() && e < entries; ++e) {
      const char* value = rd_kafka_ConfigEntry_value(entry[e]);
      if (value != nullptr) topic->config[rd_kafka_ConfigEntry_name(entry[e])] = value;
    }
  }
}

void ask_configs(rd_kafka_t* client, std::vector<TopicConfigFacts>& topics, int wait_ms) {
  std::vector<KafkaResource> resources;
  std::vector<rd_kafka_ConfigResource_t*> list;
  for (const TopicConfigFacts& t : topics) {
    if (t.state != TopicState::present) continue;
    resources.emplace_back(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, t.topic.c_str()));
    list.push_back(resources.back().get());
  }
  if (list.empty()) return;
  const KafkaAdminOptions options{rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS)};
  const KafkaQueue queue{rd_kafka_queue_new(client)};
  rd_kafka_AdminOptions_set_request_timeout(options.get(), wait_ms, nullptr, 0);
  rd_kafka_DescribeConfigs(client, list.data(), list.size(), options.get(), queue.get());
  const KafkaEvent event{rd_kafka_queue_poll(queue.get(), wait_ms + static_cast<int>(event_slack.count()))};
  if (event && rd_kafka_event_error(event.get()) == RD_KAFKA_RESP_ERR_NO_ERROR)
    take_configs(event.get(), topics);
}

}  // namespace

Result<ClusterFacts> read_cluster_facts(const KafkaOptions& options, const std::vector<std::string>& topics,
                                        Millis patience) {
  const auto client = make_client(options);
  if (!client) return failure(client.error());
  const int wait_ms = static_cast<int>(patience.count());
  const rd_kafka_metadata_t* raw = nullptr;
  const auto error = rd_kafka_metadata(client->get(), 0, nullptr, &raw, wait_ms);
  const KafkaMetadata metadata{raw};
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    const std::string why = last_error(client->get());
    return failure(Disposition::retry,
                   "no broker answers: " + (why.empty() ? std::string{rd_kafka_err2str(error)} : why));
  }
  ClusterFacts facts{.brokers = metadata->broker_cnt, .access = read_access_rules(client->get(), wait_ms)};
  for (const std::string& topic : topics) {
    auto known = ask_topic(client->get(), topic, wait_ms);
    if (!known) return failure(known.error());
    facts.topics.push_back(std::move(*known));
  }
  ask_configs(client->get(), facts.topics, wait_ms);
  return facts;
}

}  // namespace outbox::relay
