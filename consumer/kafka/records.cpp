#include "consumer/kafka/records.hpp"

#include <utility>

namespace outbox {
namespace {

constexpr std::size_t record_overhead_bytes = 200;  // of librdkafka's message and ours, about

/// A message, its headers as views, and the client that must outlive both.
struct OwnedMessage {
  KafkaClient client;
  KafkaMessage message;
  std::vector<Header> headers;
};

std::optional<std::string_view> view(const void* bytes, std::size_t size) {
  if (!bytes) return std::nullopt;
  return std::string_view(static_cast<const char*>(bytes), size);
}

std::vector<Header> headers_of(const rd_kafka_message_t* message) {
  std::vector<Header> out;
  rd_kafka_headers_t* list = nullptr;
  if (rd_kafka_message_headers(message, &list) != RD_KAFKA_RESP_ERR_NO_ERROR) return out;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(list, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i)
    out.push_back({name, view(value, size)});
  return out;
}

std::int64_t bytes_of(const Record& record) {
  std::size_t bytes =
      record_overhead_bytes + record.key.value_or("").size() + record.body.value_or("").size();
  for (const auto& header : record.headers) bytes += header.name.size() + header.value.value_or("").size();
  return static_cast<std::int64_t>(bytes);
}

}  // namespace

Fetched to_fetched(KafkaClient client, KafkaMessage message) {
  auto owned = std::make_shared<OwnedMessage>();
  owned->client = std::move(client);
  owned->headers = headers_of(message.get());
  owned->message = std::move(message);
  const auto& raw = *owned->message;
  const Record record{.topic = rd_kafka_topic_name(raw.rkt),
                      .partition = raw.partition,
                      .offset = raw.offset,
                      .key = view(raw.key, raw.key_len),
                      .body = view(raw.payload, raw.len),
                      .headers = owned->headers};
  return {record, std::move(owned), bytes_of(record)};
}

}  // namespace outbox
