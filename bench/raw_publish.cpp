#include "bench/raw_publish.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "bench/stage.hpp"

namespace bench {
namespace {

std::atomic<long long> refused{0};

void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void*) noexcept {
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) ++refused;
}

rd_kafka_t* connect(const std::string& bootstrap) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [name, value] : {std::pair{"bootstrap.servers", bootstrap.c_str()},
                                    {"enable.idempotence", "true"},
                                    {"acks", "all"},
                                    {"linger.ms", "0"},
                                    {"batch.num.messages", "10000"},
                                    {"batch.size", "1000000"},
                                    {"socket.nagle.disable", "true"}}) {
    rd_kafka_conf_set(conf, name, value, nullptr, 0);
  }
  rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  std::array<char, 512> reason{};
  rd_kafka_t* client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason.data(), reason.size());
  if (client == nullptr) throw std::runtime_error(std::string("kafka: ") + reason.data());
  return client;
}

// As long as the relay's: an id, a sequence number, a time and a source.
rd_kafka_headers_t* four_headers() {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(4);
  const auto add = [&](std::string_view name, std::string_view value) {
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                        static_cast<ssize_t>(value.size()));
  };
  add("outbox-id", "018f3c8e-7c1a-7000-8000-0123456789ab");
  add("outbox-seq", "123456");
  add("outbox-created-at", "2026-01-01T00:00:00.123456Z");
  add("outbox-source", "bench");
  return headers;
}

}  // namespace

Producer::Producer(const std::string& bootstrap, const std::string& topic)
    : client_(connect(bootstrap)), topic_(rd_kafka_topic_new(client_, topic.c_str(), nullptr)) {}

Producer::~Producer() {
  rd_kafka_topic_destroy(topic_);
  rd_kafka_destroy(client_);
}

void Producer::send(int partition, std::string_view key, std::string_view body) {
  rd_kafka_headers_t* headers = four_headers();
  rd_kafka_resp_err_t error{};
  // C's calling convention wants a value that may be written, and writes none of them.
  do {
    error = rd_kafka_producev(client_, RD_KAFKA_V_RKT(topic_), RD_KAFKA_V_PARTITION(partition),
                              RD_KAFKA_V_KEY(key.data(), key.size()),
                              RD_KAFKA_V_VALUE(const_cast<char*>(body.data()), body.size()),
                              RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
    rd_kafka_poll(client_, error == RD_KAFKA_RESP_ERR__QUEUE_FULL ? 10 : 0);
  } while (error == RD_KAFKA_RESP_ERR__QUEUE_FULL);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(rd_kafka_err2str(error));
}

void Producer::flush() {
  if (rd_kafka_flush(client_, 60'000) != RD_KAFKA_RESP_ERR_NO_ERROR || refused != 0)
    throw std::runtime_error("kafka: not everything was acknowledged");
}

double publish_rate(const std::string& bootstrap, const std::string& topic, int messages) {
  std::vector<std::string> names;
  names.reserve(keys);
  for (int key = 0; key < keys; ++key) names.push_back("key-" + std::to_string(key));
  const std::string body = body_of(0);
  Producer producer(bootstrap, topic);
  for (int partition = 0; partition < partitions; ++partition) producer.send(partition, names[0], body);
  producer.flush();  // connections and metadata are not what is measured
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < messages; ++i) {
    const int key = i % keys;
    producer.send(key % partitions, names[static_cast<std::size_t>(key)], body);
  }
  producer.flush();
  return messages / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace bench
