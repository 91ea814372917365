#include "bench/reader.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include "bench/stage.hpp"

namespace bench {
namespace {

rd_kafka_t* connect(const std::string& bootstrap) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [name, value] : {std::pair{"bootstrap.servers", bootstrap.c_str()},
                                    {"group.id", "bench"},
                                    {"enable.auto.commit", "false"},
                                    {"fetch.min.bytes", "1"},
                                    {"fetch.wait.max.ms", "20"},
                                    {"socket.nagle.disable", "true"}}) {
    rd_kafka_conf_set(conf, name, value, nullptr, 0);
  }
  std::array<char, 512> reason{};
  rd_kafka_t* client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason.data(), reason.size());
  if (client == nullptr) throw std::runtime_error(std::string("kafka: ") + reason.data());
  rd_kafka_poll_set_consumer(client);
  return client;
}

}  // namespace

Reader::Reader(const std::string& bootstrap, std::string topic)
    : client_(connect(bootstrap)), topic_(std::move(topic)) {}

Reader::~Reader() {
  rd_kafka_consumer_close(client_);
  rd_kafka_destroy(client_);
}

long long Reader::messages() {
  long long sum = 0;
  for (int partition = 0; partition < partitions; ++partition) {
    std::int64_t low = 0, high = 0;
    const auto error =
        rd_kafka_query_watermark_offsets(client_, topic_.c_str(), partition, &low, &high, 10'000);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(rd_kafka_err2str(error));
    sum += high;
  }
  return sum;
}

void Reader::assign() {
  rd_kafka_topic_partition_list_t* all = rd_kafka_topic_partition_list_new(partitions);
  for (int partition = 0; partition < partitions; ++partition)
    rd_kafka_topic_partition_list_add(all, topic_.c_str(), partition)->offset = RD_KAFKA_OFFSET_BEGINNING;
  const auto error = rd_kafka_assign(client_, all);
  rd_kafka_topic_partition_list_destroy(all);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(rd_kafka_err2str(error));
}

void Reader::poll(int timeout_ms, const std::function<void(std::string_view body)>& message) {
  rd_kafka_message_t* next = rd_kafka_consumer_poll(client_, timeout_ms);
  if (next == nullptr) return;
  if (next->err == RD_KAFKA_RESP_ERR_NO_ERROR) message({static_cast<const char*>(next->payload), next->len});
  rd_kafka_message_destroy(next);
}

}  // namespace bench
