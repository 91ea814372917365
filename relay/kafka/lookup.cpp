#include "relay/kafka/lookup.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <thread>

#include "relay/core/kafka/errors.hpp"
#include "relay/core/message/topic_name.hpp"

namespace outbox::relay {
namespace {

constexpr Millis slice{1000};  // how long a stop may have to wait

using Deadline = std::chrono::steady_clock::time_point;

Millis left_until(Deadline deadline) {
  const auto left = std::chrono::duration_cast<Millis>(deadline - std::chrono::steady_clock::now());
  return std::clamp(left, Millis{0}, slice);
}

// Asks in slices until an answer, the deadline or a stop.
template <class Ask>
rd_kafka_resp_err_t ask_until(Deadline deadline, const std::atomic<bool>& stopping, Ask ask) {
  auto error = RD_KAFKA_RESP_ERR__TIMED_OUT;
  while (!stopping && left_until(deadline) > Millis{0}) {
    error = ask(static_cast<int>(left_until(deadline).count()));
    if (error != RD_KAFKA_RESP_ERR__TIMED_OUT && error != RD_KAFKA_RESP_ERR__TRANSPORT) break;
  }
  return error;
}

std::optional<std::int64_t> limit_in(const rd_kafka_event_t* event) {
  const auto* result = rd_kafka_event_DescribeConfigs_result(const_cast<rd_kafka_event_t*>(event));
  if (result == nullptr) return std::nullopt;
  std::size_t resources = 0;
  const auto** resource = rd_kafka_DescribeConfigs_result_resources(result, &resources);
  if (resources == 0 || rd_kafka_ConfigResource_error(resource[0]) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return std::nullopt;
  std::size_t entries = 0;
  const auto** entry = rd_kafka_ConfigResource_configs(resource[0], &entries);
  for (std::size_t i = 0; i < entries; ++i) {
    const char* value = rd_kafka_ConfigEntry_value(entry[i]);
    if (std::strcmp(rd_kafka_ConfigEntry_name(entry[i]), "max.message.bytes") != 0 || value == nullptr)
      continue;
    std::int64_t limit = 0;
    if (std::from_chars(value, value + std::strlen(value), limit).ec == std::errc{}) return limit;
  }
  return std::nullopt;
}

// Old brokers, mock clusters and missing DESCRIBE_CONFIGS rights do not answer this; the default stands in
// then, and the facts say so.
// Any broker knows it: without a named one librdkafka would look for the controller first, which a mock
// cluster lacks.
std::optional<std::int64_t> ask_limit(rd_kafka_t* client, const std::string& topic, std::int32_t broker,
                                      Millis patience) {
  const KafkaResource resource{rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str())};
  const KafkaAdminOptions options{rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS)};
  const KafkaQueue queue{rd_kafka_queue_new(client)};
  const int wait_ms = static_cast<int>(patience.count());
  rd_kafka_AdminOptions_set_request_timeout(options.get(), std::max(wait_ms, 1), nullptr, 0);
  rd_kafka_AdminOptions_set_broker(options.get(), broker, nullptr, 0);
  rd_kafka_ConfigResource_t* list[] = {resource.get()};
  rd_kafka_DescribeConfigs(client, list, 1, options.get(), queue.get());
  const KafkaEvent event{rd_kafka_queue_poll(queue.get(), wait_ms + 500)};
  if (!event || rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) return std::nullopt;
  return limit_in(event.get());
}

struct Answer {
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;  // the topic's
  std::int32_t partitions = 0;
  std::int32_t broker = -1;  // one that there is
};

Result<Answer> ask_partitions(rd_kafka_t* client, const std::string& topic, Deadline deadline,
                              const std::atomic<bool>& stopping) {
  const KafkaTopic handle{rd_kafka_topic_new(client, topic.c_str(), nullptr)};
  if (!handle) return Answer{RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION};
  KafkaMetadata metadata;
  const auto error = ask_until(deadline, stopping, [&](int wait_ms) {
    const rd_kafka_metadata_t* raw = nullptr;
    const auto answer = rd_kafka_metadata(client, 0, handle.get(), &raw, wait_ms);
    metadata.reset(raw);
    return answer;
  });
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    auto said = to_error(error, "looking up topic " + topic, rd_kafka_err2str(error));
    said.disposition = Disposition::retry;
    return failure(std::move(said));
  }
  if (metadata->topic_cnt != 1) return Answer{RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART};
  return Answer{metadata->topics[0].err, metadata->topics[0].partition_cnt,
                metadata->broker_cnt > 0 ? metadata->brokers[0].id : -1};
}

}  // namespace

Result<TopicFacts> look_up_topic(rd_kafka_t* client, const std::string& topic, Millis patience,
                                 const std::atomic<bool>& stopping) {
  TopicFacts facts;
  if (const auto fault = topic_name_fault(topic)) {
    facts.state = TopicState::missing;
    facts.reason = *fault;
    return facts;
  }
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const auto answer = ask_partitions(client, topic, deadline, stopping);
  if (!answer) return failure(answer.error());
  const auto verdict = topic_verdict(answer->error);
  auto said = to_error(answer->error, "topic " + topic, rd_kafka_err2str(answer->error));
  if (!verdict.known || (verdict.state == TopicState::present && answer->partitions == 0)) {
    said.disposition = Disposition::retry;
    return failure(std::move(said));
  }
  facts.state = verdict.state;
  facts.partitions = answer->partitions;
  if (facts.state != TopicState::present) {
    facts.reason = said.text();
  } else if (const auto limit = ask_limit(client, topic, answer->broker, left_until(deadline))) {
    facts.message_bytes_max = *limit;
  } else {
    facts.reason = "its max.message.bytes cannot be read; the right DESCRIBE_CONFIGS on the topic lets it be";
  }
  return facts;
}

namespace {

constexpr Millis between_looks{50};  // at a topic that is being made

// nullopt: it is there, or will be.
std::optional<std::string> ask_creation(rd_kafka_t* client, const std::string& topic,
                                        const TopicCreation& wanted, Millis patience) {
  std::array<char, 512> text{};
  const auto count = [](std::int32_t n) { return n > 0 ? n : -1; };
  const KafkaNewTopic made{rd_kafka_NewTopic_new(topic.c_str(), count(wanted.partitions),
                                                 count(wanted.replication), text.data(), text.size())};
  if (!made) return text.data();
  for (const auto& [name, value] : wanted.configs)
    rd_kafka_NewTopic_set_config(made.get(), name.c_str(), value.c_str());
  const KafkaAdminOptions options{rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_CREATETOPICS)};
  const KafkaQueue queue{rd_kafka_queue_new(client)};
  const int wait_ms = static_cast<int>(patience.count());
  rd_kafka_AdminOptions_set_request_timeout(options.get(), std::max(wait_ms, 1), nullptr, 0);
  rd_kafka_NewTopic_t* list[] = {made.get()};
  rd_kafka_CreateTopics(client, list, 1, options.get(), queue.get());
  const KafkaEvent event{rd_kafka_queue_poll(queue.get(), wait_ms + 500)};
  if (!event) return "no answer";
  if (rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return rd_kafka_event_error_string(event.get());
  std::size_t topics = 0;
  const auto** results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.get()), &topics);
  const auto error = topics == 1 ? rd_kafka_topic_result_error(results[0]) : RD_KAFKA_RESP_ERR_UNKNOWN;
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
    return std::nullopt;
  const char* said = rd_kafka_topic_result_error_string(results[0]);
  return said != nullptr ? said : rd_kafka_err2str(error);
}

}  // namespace

Result<TopicFacts> create_topic(rd_kafka_t* client, const std::string& topic, const TopicCreation& wanted,
                                Millis patience, const std::atomic<bool>& stopping) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  if (const auto refused = ask_creation(client, topic, wanted, left_until(deadline))) {
    TopicFacts facts;
    facts.state = TopicState::missing;
    facts.reason = "topic " + topic + " could not be created: " + *refused;
    return facts;
  }
  while (true) {
    auto facts = look_up_topic(client, topic, left_until(deadline), stopping);
    const bool there = facts && facts->state == TopicState::present;
    if (there || stopping || left_until(deadline) == Millis{0}) return facts;
    std::this_thread::sleep_for(between_looks);
  }
}

bool cluster_answers(rd_kafka_t* client, Millis patience) {
  const rd_kafka_metadata_t* raw = nullptr;
  const auto error = rd_kafka_metadata(client, 0, nullptr, &raw, static_cast<int>(patience.count()));
  const KafkaMetadata metadata{raw};
  return error == RD_KAFKA_RESP_ERR_NO_ERROR;
}

}  // namespace outbox::relay
