#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>

#include "tests/support/kafka/cluster.hpp"
#include "tests/support/kafka/handles.hpp"

namespace outbox::test {
namespace {

using namespace std::chrono_literals;

std::optional<std::string> text_of(const void* data, std::size_t size) {
  if (data == nullptr) return std::nullopt;
  return std::string{static_cast<const char*>(data), size};
}

KafkaRecord record_of(const rd_kafka_message_t& message) {
  KafkaRecord record;
  record.key = text_of(message.key, message.key_len);
  record.body = text_of(message.payload, message.len);
  record.partition = message.partition;
  record.offset = message.offset;
  rd_kafka_timestamp_type_t type{};
  record.timestamp = std::chrono::sys_time<std::chrono::milliseconds>{
      std::chrono::milliseconds{rd_kafka_message_timestamp(&message, &type)}};
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return record;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i) {
    record.headers.emplace_back(name, text_of(value, size));
  }
  return record;
}

// A broker is told of its leadership a moment after the metadata says so.
std::int64_t end_of(rd_kafka_t* client, const std::string& topic, std::int32_t partition) {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  for (;;) {
    std::int64_t low = 0;
    std::int64_t high = 0;
    const auto error =
        rd_kafka_query_watermark_offsets(client, topic.c_str(), partition, &low, &high, 10'000);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return high > low ? high : 0;
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("kafka: watermarks of " + topic + ": " + rd_kafka_err2str(error));
    }
    std::this_thread::sleep_for(20ms);
  }
}

// The high watermarks as a read-uncommitted reader has them: what lies below is what the caller means by
// "all".
std::map<std::int32_t, std::int64_t> ends_of(rd_kafka_t* client, const std::string& topic) {
  const int partitions = partitions_with_leader(client, topic);
  if (partitions <= 0) throw std::runtime_error("kafka: reading " + topic + ": no such topic");
  std::map<std::int32_t, std::int64_t> ends;
  for (std::int32_t p = 0; p < partitions; ++p) {
    if (const auto end = end_of(client, topic, p); end > 0) ends[p] = end;
  }
  return ends;
}

}  // namespace

std::vector<KafkaRecord> read_all(const std::string& bootstrap, const std::string& topic,
                                  Isolation isolation) {
  // A client that says nothing of isolation gets the last stable offset, which lies below what was just
  // committed.
  const auto plain = make_client(RD_KAFKA_CONSUMER,
                                 {{"bootstrap.servers", bootstrap}, {"isolation.level", "read_uncommitted"}});
  auto open = ends_of(plain.get(), topic);
  const auto consumer = make_client(
      RD_KAFKA_CONSUMER,
      {{"bootstrap.servers", bootstrap},
       {"group.id", "outbox-test-reader"},
       {"enable.auto.commit", "false"},
       {"enable.partition.eof",
        "true"},  // control records and aborted messages move it, and no message shows that
       {"fetch.wait.max.ms", "10"},
       {"isolation.level", isolation == Isolation::read_committed ? "read_committed" : "read_uncommitted"}});
  rd_kafka_poll_set_consumer(consumer.get());
  const PartitionList assigned{rd_kafka_topic_partition_list_new(static_cast<int>(open.size()))};
  for (const auto& [partition, end] : open) {
    rd_kafka_topic_partition_list_add(assigned.get(), topic.c_str(), partition)->offset =
        RD_KAFKA_OFFSET_BEGINNING;
  }
  rd_kafka_assign(consumer.get(), assigned.get());

  std::vector<KafkaRecord> records;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!open.empty()) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("kafka: reading " + topic + ": 60 s passed");
    const Record message{rd_kafka_consumer_poll(consumer.get(), 100)};
    if (!message) continue;
    const auto at = open.find(message->partition);
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      if (at != open.end() && message->offset >= at->second) open.erase(at);
      continue;
    }
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR || at == open.end()) continue;  // it reconnects by itself
    if (message->offset < at->second) records.push_back(record_of(*message));
    if (message->offset + 1 >= at->second) open.erase(at);
  }
  std::ranges::sort(records, {}, [](const KafkaRecord& r) { return std::tuple{r.partition, r.offset}; });
  return records;
}

}  // namespace outbox::test
