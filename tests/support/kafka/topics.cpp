#include <librdkafka/rdkafka.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/support/kafka/cluster.hpp"
#include "tests/support/kafka/handles.hpp"

namespace outbox::test {
namespace {

using namespace std::chrono_literals;

constexpr int request_ms = 10'000;
using ErrorText = std::array<char, 512>;

std::runtime_error failed(const std::string& what, const std::string& why) {
  return std::runtime_error("kafka: " + what + ": " + why);
}

// One admin call: `send` puts the request on the queue, `results` picks the per-topic results of its answer.
template <class Send, class Results>
void admin(rd_kafka_t* client, const std::string& what, Send send, Results results) {
  const Queue queue{rd_kafka_queue_new(client)};
  send(queue.get());
  const Event event{rd_kafka_queue_poll(queue.get(), request_ms * 3)};
  if (!event) throw failed(what, "no answer");
  if (rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    throw failed(what, rd_kafka_event_error_string(event.get()));
  }
  std::size_t count = 0;
  const rd_kafka_topic_result_t** topics = results(event.get(), &count);
  for (std::size_t i = 0; i < count; ++i) {
    if (rd_kafka_topic_result_error(topics[i]) == RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    const char* why = rd_kafka_topic_result_error_string(topics[i]);
    throw failed(what, why != nullptr ? why : rd_kafka_err2str(rd_kafka_topic_result_error(topics[i])));
  }
}

}  // namespace

Client make_client(rd_kafka_type_t type, const std::map<std::string, std::string>& properties) {
  ErrorText text{};
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "log_level", "2", nullptr, 0);  // brokers are killed on purpose
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), text.data(), text.size()) == RD_KAFKA_CONF_OK)
      continue;
    rd_kafka_conf_destroy(conf);
    throw failed(name, text.data());
  }
  Client client{rd_kafka_new(type, conf, text.data(), text.size())};
  if (!client) {
    rd_kafka_conf_destroy(conf);
    throw failed("client", text.data());
  }
  return client;
}

int partitions_with_leader(rd_kafka_t* client, const std::string& topic) {
  // All topics are asked for: a question for one would make a mock cluster create it.
  const rd_kafka_metadata_t* raw = nullptr;
  if (rd_kafka_metadata(client, 1, nullptr, &raw, request_ms) != RD_KAFKA_RESP_ERR_NO_ERROR) return -1;
  const Metadata metadata{raw};
  for (int i = 0; i < metadata->topic_cnt; ++i) {
    const auto& found = metadata->topics[i];
    if (topic != found.topic) continue;
    int count = 0;
    for (int p = 0; p < found.partition_cnt; ++p) count += found.partitions[p].leader >= 0 ? 1 : 0;
    return count;
  }
  return 0;
}

void await_partitions(rd_kafka_t* client, const std::string& topic, int partitions) {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (partitions_with_leader(client, topic) != partitions) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw failed(topic, "not " + std::to_string(partitions) + " partitions with a leader after 30 s");
    }
    std::this_thread::sleep_for(10ms);
  }
}

void create_topic(rd_kafka_t* client, const std::string& name, int partitions,
                  const KafkaCluster::Configs& configs) {
  ErrorText text{};
  const NewTopic topic{rd_kafka_NewTopic_new(name.c_str(), partitions, -1, text.data(), text.size())};
  if (!topic) throw failed(name, text.data());
  for (const auto& [key, value] : configs)
    rd_kafka_NewTopic_set_config(topic.get(), key.c_str(), value.c_str());
  rd_kafka_NewTopic_t* topics[] = {topic.get()};
  admin(
      client, "creating " + name,
      [&](auto* queue) { rd_kafka_CreateTopics(client, topics, 1, nullptr, queue); },
      [](auto* event, auto* count) {
        return rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), count);
      });
  await_partitions(client, name, partitions);
}

void add_partitions(rd_kafka_t* client, const std::string& name, int partitions) {
  ErrorText text{};
  const NewPartitions wanted{rd_kafka_NewPartitions_new(name.c_str(), static_cast<std::size_t>(partitions),
                                                        text.data(), text.size())};
  if (!wanted) throw failed(name, text.data());
  rd_kafka_NewPartitions_t* list[] = {wanted.get()};
  admin(
      client, "adding partitions to " + name,
      [&](auto* queue) { rd_kafka_CreatePartitions(client, list, 1, nullptr, queue); },
      [](auto* event, auto* count) {
        return rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(event), count);
      });
  await_partitions(client, name, partitions);
}

void delete_topic(rd_kafka_t* client, const std::string& name) {
  const DeleteTopic topic{rd_kafka_DeleteTopic_new(name.c_str())};
  rd_kafka_DeleteTopic_t* list[] = {topic.get()};
  admin(
      client, "deleting " + name,
      [&](auto* queue) { rd_kafka_DeleteTopics(client, list, 1, nullptr, queue); },
      [](auto* event, auto* count) {
        return rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), count);
      });
  await_partitions(client, name, 0);
}

}  // namespace outbox::test
