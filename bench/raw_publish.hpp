#pragma once
// librdkafka alone, used as the relay uses it: idempotent, acks=all, and four headers on every message. The
// limit of the publishing side, and the floor of latency.

#include <librdkafka/rdkafka.h>

#include <string>
#include <string_view>

namespace bench {

class Producer {
 public:
  explicit Producer(const std::string& bootstrap, const std::string& topic);
  ~Producer();
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  /// `body` must stay until it is acknowledged. Waits while the queue is full. Any thread.
  void send(int partition, std::string_view key, std::string_view body);
  void flush();  ///< returns when everything is acknowledged; throws where something was refused

 private:
  rd_kafka_t* client_;
  rd_kafka_topic_t* topic_;
};

/// Messages a second, from the first send to the last acknowledgement.
[[nodiscard]] double publish_rate(const std::string& bootstrap, const std::string& topic, int messages);

}  // namespace bench
