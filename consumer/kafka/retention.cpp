#include "consumer/kafka/retention.hpp"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <string_view>

#include "consumer/kafka/handles.hpp"

namespace outbox {
namespace {

constexpr int answer_ms_max = 5000;

using Admin = std::unique_ptr<rd_kafka_t, DestroyHandle<rd_kafka_destroy>>;
using Resource = std::unique_ptr<rd_kafka_ConfigResource_t, DestroyHandle<rd_kafka_ConfigResource_destroy>>;
using AdminOptions = std::unique_ptr<rd_kafka_AdminOptions_t, DestroyHandle<rd_kafka_AdminOptions_destroy>>;

void say_nothing(const rd_kafka_t*, int, const char*, const char*) noexcept {}

/// What a broker's connection failed of: a request knows only that there is none.
struct LastError {
  std::mutex mutex;
  std::string reason;
};

void keep_error(rd_kafka_t*, int code, const char* reason, void* self) noexcept {
  auto& last = *static_cast<LastError*>(self);
  if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) return;  // says nothing more
  const std::lock_guard lock(last.mutex);
  last.reason = reason ? reason : "";
}

Result<Admin> make_client(const std::map<std::string, std::string>& properties, LastError& last) {
  KafkaConf conf{rd_kafka_conf_new()};
  char reason[512];
  for (const auto& [property, value] : properties)
    if (rd_kafka_conf_set(conf.get(), property.c_str(), value.c_str(), reason, sizeof reason) !=
        RD_KAFKA_CONF_OK)
      return failure(Disposition::fatal, std::string("kafka: ") + reason);
  rd_kafka_conf_set_log_cb(conf.get(), &say_nothing);
  rd_kafka_conf_set_opaque(conf.get(), &last);
  rd_kafka_conf_set_error_cb(conf.get(), &keep_error);
  Admin client{rd_kafka_new(RD_KAFKA_CONSUMER, conf.get(), reason, sizeof reason)};
  if (!client) return failure(Disposition::fatal, std::string("kafka: ") + reason);
  static_cast<void>(conf.release());  // the client has it
  return client;
}

bool may_change(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR__TIMED_OUT || error == RD_KAFKA_RESP_ERR__TRANSPORT ||
         error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || error == RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT ||
         error == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS;
}

tl::unexpected<Error> refused(rd_kafka_resp_err_t error, const std::string& subject, const char* text) {
  return failure(may_change(error) ? Disposition::retry : Disposition::fatal,
                 "the retention of " + subject + " can't be read: " + (text ? text : rd_kafka_err2str(error)),
                 rd_kafka_err2name(error),
                 "allow DescribeConfigs on the topics, or say horizon_check = unchecked");
}

/// What is no number is no limit: the check then refuses, which is the safe side.
std::chrono::milliseconds read_ms(const char* value) {
  std::int64_t number = -1;
  if (const std::string_view text = value ? value : ""; !text.empty())
    std::from_chars(text.data(), text.data() + text.size(), number);
  return std::chrono::milliseconds{number};
}

/// So that a cluster which is away is told from one that does not know the request.
Status reach(rd_kafka_t* client, const std::string& any_topic, LastError& last) {
  const KafkaTopic topic{rd_kafka_topic_new(client, any_topic.c_str(), nullptr)};
  const rd_kafka_metadata_t* raw = nullptr;
  const auto error = rd_kafka_metadata(client, 0, topic.get(), &raw, answer_ms_max);
  const KafkaMetadata metadata{raw};
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  rd_kafka_poll(client, 0);  // error events are told here
  const std::lock_guard lock(last.mutex);
  return refused(error, "the topics", last.reason.empty() ? nullptr : last.reason.c_str());
}

TopicRetention retention_of(const rd_kafka_ConfigResource_t* resource) {
  TopicRetention out{.topic = rd_kafka_ConfigResource_name(resource),
                     .retention = std::chrono::milliseconds{-1}};
  std::size_t count = 0;
  const auto* const* entries = rd_kafka_ConfigResource_configs(resource, &count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view name = rd_kafka_ConfigEntry_name(entries[i]);
    const char* value = rd_kafka_ConfigEntry_value(entries[i]);
    if (name == "retention.ms") out.retention = read_ms(value);
    if (name == "segment.ms") out.segment = read_ms(value);
    if (name == "cleanup.policy")
      out.compacted = value && std::string_view(value).find("compact") != std::string_view::npos;
  }
  return out;
}

Result<RetentionAnswer> read_answer(const rd_kafka_event_t* event) {
  RetentionAnswer out;
  std::size_t count = 0;
  const auto* const* resources = rd_kafka_DescribeConfigs_result_resources(
      rd_kafka_event_DescribeConfigs_result(const_cast<rd_kafka_event_t*>(event)), &count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto error = rd_kafka_ConfigResource_error(resources[i]);
    const std::string name = rd_kafka_ConfigResource_name(resources[i]);
    if (error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
      out.missing.push_back(name);
    else if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
      return refused(error, "topic " + name, rd_kafka_ConfigResource_error_string(resources[i]));
    else
      out.topics.push_back(retention_of(resources[i]));
  }
  return out;
}

}  // namespace

Result<RetentionAnswer> read_retention(const std::map<std::string, std::string>& properties,
                                       std::span<const std::string> topics) {
  LastError last;  // outlives the client
  const auto client = make_client(properties, last);
  if (!client) return failure(client.error());
  if (const Status reached = reach(client->get(), topics.front(), last); !reached)
    return failure(reached.error());
  std::vector<Resource> owned;
  std::vector<rd_kafka_ConfigResource_t*> resources;
  for (const auto& topic : topics) {
    owned.emplace_back(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str()));
    resources.push_back(owned.back().get());
  }
  const AdminOptions options{rd_kafka_AdminOptions_new(client->get(), RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS)};
  char reason[512];
  rd_kafka_AdminOptions_set_request_timeout(options.get(), answer_ms_max, reason, sizeof reason);
  const KafkaQueue queue{rd_kafka_queue_new(client->get())};
  rd_kafka_DescribeConfigs(client->get(), resources.data(), resources.size(), options.get(), queue.get());
  const KafkaEvent event{rd_kafka_queue_poll(queue.get(), answer_ms_max)};
  const auto error = event ? rd_kafka_event_error(event.get()) : RD_KAFKA_RESP_ERR__TIMED_OUT;
  if (error == RD_KAFKA_RESP_ERR__TIMED_OUT) return RetentionAnswer{{}, {}, true};
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    return refused(error, "the topics", rd_kafka_event_error_string(event.get()));
  return read_answer(event.get());
}

}  // namespace outbox
