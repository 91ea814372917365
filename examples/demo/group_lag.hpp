#pragma once
// How many records of a topic a consumer group has not committed yet. Blocks, one thread.

#include <cstdint>
#include <memory>
#include <string>

namespace demo {

class GroupLag {
 public:
  GroupLag(const std::string& bootstrap, const std::string& group, std::string topic, int partitions);
  ~GroupLag();

  /// Errors: std::runtime_error where Kafka does not answer.
  [[nodiscard]] std::int64_t records();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace demo
