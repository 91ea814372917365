#include "examples/demo/group_lag.hpp"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace demo {
namespace {

constexpr int answer_timeout_ms = 10'000;

template <class T, void (*Free)(T*)>
struct Freeing {
  void operator()(T* owned) const noexcept { Free(owned); }
};
using Client = std::unique_ptr<rd_kafka_t, Freeing<rd_kafka_t, rd_kafka_destroy>>;
using Offsets =
    std::unique_ptr<rd_kafka_topic_partition_list_t,
                    Freeing<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>>;

void check(rd_kafka_resp_err_t error, const char* what) {
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error(std::string("kafka: ") + what + ": " + rd_kafka_err2str(error));
}

Client connect(const std::string& bootstrap, const std::string& group) {
  std::array<char, 512> reason{};
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap.c_str(), nullptr, 0);
  rd_kafka_conf_set(conf, "group.id", group.c_str(), nullptr, 0);
  rd_kafka_t* client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason.data(), reason.size());
  if (client == nullptr) throw std::runtime_error(std::string("kafka: ") + reason.data());
  return Client(client);
}

}  // namespace

struct GroupLag::State {
  Client client;
  std::string topic;
  int partitions;

  std::int64_t end_of(int partition) {
    std::int64_t low = 0, high = 0;
    check(rd_kafka_query_watermark_offsets(client.get(), topic.c_str(), partition, &low, &high,
                                           answer_timeout_ms),
          "watermarks");
    return high;
  }
};

GroupLag::GroupLag(const std::string& bootstrap, const std::string& group, std::string topic, int partitions)
    : state_(new State{connect(bootstrap, group), std::move(topic), partitions}) {}
GroupLag::~GroupLag() = default;

std::int64_t GroupLag::records() {
  const Offsets offsets(rd_kafka_topic_partition_list_new(state_->partitions));
  for (int p = 0; p < state_->partitions; ++p)
    rd_kafka_topic_partition_list_add(offsets.get(), state_->topic.c_str(), p);
  check(rd_kafka_committed(state_->client.get(), offsets.get(), answer_timeout_ms), "committed offsets");
  std::int64_t behind = 0;
  for (int p = 0; p < state_->partitions; ++p)
    behind += state_->end_of(p) - std::max<std::int64_t>(0, offsets->elems[p].offset);
  return behind;
}

}  // namespace demo
