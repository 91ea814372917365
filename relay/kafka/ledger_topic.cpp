#include "relay/kafka/ledger_topic.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "relay/core/kafka/errors.hpp"
#include "relay/kafka/lookup.hpp"

namespace outbox::relay {
namespace {

using NewTopic = KafkaOwned<rd_kafka_NewTopic_t, rd_kafka_NewTopic_destroy>;
using NewPartitions = KafkaOwned<rd_kafka_NewPartitions_t, rd_kafka_NewPartitions_destroy>;

constexpr Millis answer_slack{500};
constexpr int replication_of_the_broker = -1;

// Small segments, cleaned early: whoever takes a lane over reads the end of it.
constexpr std::array<std::array<const char*, 2>, 3> configs{{
    {"cleanup.policy", "compact"},
    {"segment.bytes", "16777216"},
    {"min.cleanable.dirty.ratio", "0.1"},
}};

struct Asking {
  rd_kafka_t* client;
  const std::string& topic;
  std::int32_t partitions;
  Millis patience;
};

std::string command(const Asking& asking) {
  return "kafka-topics.sh --create --topic " + asking.topic + " --partitions " +
         std::to_string(asking.partitions) + " --config cleanup.policy=compact";
}

KafkaAdminOptions admin_options(const Asking& asking, rd_kafka_admin_op_t operation) {
  KafkaAdminOptions options{rd_kafka_AdminOptions_new(asking.client, operation)};
  const int wait_ms = static_cast<int>(asking.patience.count());
  rd_kafka_AdminOptions_set_request_timeout(options.get(), std::max(wait_ms, 1), nullptr, 0);
  return options;
}

KafkaEvent answer(const Asking& asking, const KafkaQueue& queue) {
  return KafkaEvent{
      rd_kafka_queue_poll(queue.get(), static_cast<int>((asking.patience + answer_slack).count()))};
}

struct Said {
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__TIMED_OUT;
  std::string text;
};

Said said(const rd_kafka_topic_result_t* result) {
  const char* text = rd_kafka_topic_result_error_string(result);
  return {rd_kafka_topic_result_error(result), text != nullptr ? text : ""};
}

Said create(const Asking& asking) {
  std::array<char, 256> why{};
  const NewTopic wanted{rd_kafka_NewTopic_new(asking.topic.c_str(), asking.partitions,
                                              replication_of_the_broker, why.data(), why.size())};
  if (!wanted) return {RD_KAFKA_RESP_ERR__INVALID_ARG, why.data()};
  for (const auto& [name, value] : configs) rd_kafka_NewTopic_set_config(wanted.get(), name, value);
  const auto options = admin_options(asking, RD_KAFKA_ADMIN_OP_CREATETOPICS);
  const KafkaQueue queue{rd_kafka_queue_new(asking.client)};
  rd_kafka_NewTopic_t* list[] = {wanted.get()};
  rd_kafka_CreateTopics(asking.client, list, 1, options.get(), queue.get());
  const KafkaEvent event = answer(asking, queue);
  if (!event) return {};
  if (const auto code = rd_kafka_event_error(event.get()))
    return {code, rd_kafka_event_error_string(event.get())};
  std::size_t count = 0;
  const auto** results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.get()), &count);
  return count == 1 ? said(results[0]) : Said{};
}

Said widen(const Asking& asking) {
  std::array<char, 256> why{};
  const NewPartitions wanted{rd_kafka_NewPartitions_new(
      asking.topic.c_str(), static_cast<std::size_t>(asking.partitions), why.data(), why.size())};
  if (!wanted) return {RD_KAFKA_RESP_ERR__INVALID_ARG, why.data()};
  const auto options = admin_options(asking, RD_KAFKA_ADMIN_OP_CREATEPARTITIONS);
  const KafkaQueue queue{rd_kafka_queue_new(asking.client)};
  rd_kafka_NewPartitions_t* list[] = {wanted.get()};
  rd_kafka_CreatePartitions(asking.client, list, 1, options.get(), queue.get());
  const KafkaEvent event = answer(asking, queue);
  if (!event) return {};
  if (const auto code = rd_kafka_event_error(event.get()))
    return {code, rd_kafka_event_error_string(event.get())};
  std::size_t count = 0;
  const auto** results =
      rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(event.get()), &count);
  return count == 1 ? said(results[0]) : Said{};
}

// nullopt: it may not be asked for, or nobody answers; then the operator's word has to do.
std::optional<std::string> cleanup_policy(const Asking& asking) {
  const KafkaResource resource{rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, asking.topic.c_str())};
  const auto options = admin_options(asking, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
  const KafkaQueue queue{rd_kafka_queue_new(asking.client)};
  rd_kafka_ConfigResource_t* list[] = {resource.get()};
  rd_kafka_DescribeConfigs(asking.client, list, 1, options.get(), queue.get());
  const KafkaEvent event = answer(asking, queue);
  if (!event || rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) return std::nullopt;
  std::size_t count = 0;
  const auto** found =
      rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event.get()), &count);
  if (count == 0 || rd_kafka_ConfigResource_error(found[0]) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return std::nullopt;
  const auto** entry = rd_kafka_ConfigResource_configs(found[0], &count);
  for (std::size_t i = 0; i < count; ++i) {
    const char* value = rd_kafka_ConfigEntry_value(entry[i]);
    if (std::strcmp(rd_kafka_ConfigEntry_name(entry[i]), "cleanup.policy") == 0 && value != nullptr)
      return value;
  }
  return std::nullopt;
}

Status refused(const Asking& asking, const Said& said, const std::string& what, const std::string& advice) {
  Error error = to_error(said.code, "ledger topic " + asking.topic + ": " + what, said.text);
  const bool passes =
      said.code == RD_KAFKA_RESP_ERR__TIMED_OUT || said.code == RD_KAFKA_RESP_ERR__TRANSPORT ||
      said.code == RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT || said.code == RD_KAFKA_RESP_ERR_NOT_CONTROLLER;
  error.disposition = passes ? Disposition::retry : Disposition::fatal;
  if (!passes) error.advice = advice;
  return failure(std::move(error));
}

Status make(const Asking& asking) {
  const Said said = create(asking);
  if (said.code == RD_KAFKA_RESP_ERR_NO_ERROR || said.code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
    return {};
  return refused(asking, said, "it is missing, and could not be created",
                 "grant the relay CREATE on it, or create it: " + command(asking));
}

Status widen_to_fit(const Asking& asking, std::int32_t present) {
  const Said said = widen(asking);
  if (said.code == RD_KAFKA_RESP_ERR_NO_ERROR || said.code == RD_KAFKA_RESP_ERR_INVALID_PARTITIONS) return {};
  return refused(asking, said,
                 "it has " + std::to_string(present) + " partitions, and " +
                     std::to_string(asking.partitions) + " lanes need one each",
                 "grant the relay ALTER on it, or widen it: kafka-topics.sh --alter --topic " + asking.topic +
                     " --partitions " + std::to_string(asking.partitions));
}

Status check_policy(const Asking& asking) {
  const auto policy = cleanup_policy(asking);
  if (!policy || *policy == "compact") return {};
  return failure(
      Disposition::fatal,
      "ledger topic " + asking.topic + ": its cleanup.policy is " + *policy +
          ", which deletes the last record of a quiet lane",
      "",
      "set it: kafka-configs.sh --alter --topic " + asking.topic + " --add-config cleanup.policy=compact");
}

}  // namespace

Status ensure_ledger_topic(rd_kafka_t* client, const std::string& topic, std::int32_t partitions,
                           Millis patience, const std::atomic<bool>& stopping) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::duration_cast<Millis>(deadline - std::chrono::steady_clock::now());
    if (left <= Millis{0} || stopping)
      return failure(Disposition::retry, "ledger topic " + topic + ": the cluster has not answered in time");
    const Asking asking{client, topic, partitions, left};
    const auto facts = look_up_topic(client, topic, left, stopping);
    if (!facts) return failure(facts.error());
    if (facts->state == TopicState::forbidden)
      return failure(Disposition::fatal, "ledger topic " + topic + ": " + facts->reason, "",
                     "grant the relay DESCRIBE, READ and WRITE on it");
    if (facts->state == TopicState::present && facts->partitions >= partitions) return check_policy(asking);
    Status changed =
        facts->state == TopicState::missing ? make(asking) : widen_to_fit(asking, facts->partitions);
    if (!changed) return changed;  // and else looked up again, until every broker knows
  }
}

}  // namespace outbox::relay
