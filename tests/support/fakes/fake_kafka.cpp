#include "tests/support/fakes/fake_kafka.hpp"

#include <utility>

namespace outbox::test {

relay::Offset FakeKafka::append(KafkaTopic& topic, relay::Partition partition, KafkaRecord record) {
  auto& log = topic.logs[partition.value];
  record.appended = next_++;
  log.push_back(std::move(record));
  return relay::Offset{std::ssize(log) - 1};
}

}  // namespace outbox::test
