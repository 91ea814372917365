#pragma once
// A librdkafka consumer of the whole topic, from its beginning: how many messages there are, and each as soon
// as it can be had.

#include <librdkafka/rdkafka.h>

#include <functional>
#include <string>
#include <string_view>

namespace bench {

class Reader {
 public:
  Reader(const std::string& bootstrap, std::string topic);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Messages in the topic by now. Blocks for a round trip a partition.
  [[nodiscard]] long long messages();
  /// Hands over what comes within `timeout_ms`: one message, or none.
  void poll(int timeout_ms, const std::function<void(std::string_view body)>& message);
  /// Starts to read every partition from its beginning.
  void assign();

 private:
  rd_kafka_t* client_;
  std::string topic_;
};

}  // namespace bench
