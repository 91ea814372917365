#pragma once
// Letters sent to a real Kafka, and a Consumer on a thread of its own.

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "letters.hpp"
#include "outbox/consumer.hpp"
#include "tests/support/kafka.hpp"

namespace outbox::test {

/// Sends each to its own partition, in order, and returns when Kafka has them. Throws std::runtime_error.
void send(const std::string& bootstrap, const std::string& topic, const std::vector<Letter>& letters);

/// The offset that `group` committed for a partition; -1: none.
std::int64_t committed(const std::string& bootstrap, const std::string& group, const std::string& topic,
                       int partition);

/// Deletes what a partition has before `offset`, as retention would. Not on a mock.
/// Kafka forgets the group, as it does a week after its last member left.
void forget_group(const std::string& bootstrap, const std::string& group);

void delete_records(const std::string& bootstrap, const std::string& topic, int partition,
                    std::int64_t offset);

/// A mock cluster does not tell how long it keeps a topic.
inline HorizonCheck horizon_check(const KafkaCluster& kafka) {
  return kafka.real() ? HorizonCheck::refuse : HorizonCheck::unchecked;
}

class RunningConsumer {
 public:
  RunningConsumer(ConsumerOptions options, Handler handler);
  ~RunningConsumer() { stop(); }
  RunningConsumer(const RunningConsumer&) = delete;
  RunningConsumer& operator=(const RunningConsumer&) = delete;

  void ask_to_stop() { consumer_.stop(); }
  void stop();  ///< and waits for its end
  [[nodiscard]] Counters counters() const { return consumer_.counters(); }
  /// What run() threw; empty while it runs and after a clean end.
  [[nodiscard]] std::string error() const;
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  Consumer consumer_;
  std::string error_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace outbox::test
