#include "tests/support/fakes/fake_kafka.hpp"

#include <utility>

namespace outbox::test {

KafkaRecord record_of(const relay::Message& m) {
  KafkaRecord r;
  r.id = m.id;
  r.msg_id = m.msg_id;
  if (m.key) r.key = std::string{*m.key};
  if (m.body) r.body = std::string{*m.body};
  for (const relay::Header& h : m.headers) {
    std::optional<std::string> value;
    if (h.value) value = std::string{*h.value};
    r.headers.emplace_back(std::string{h.name}, std::move(value));
  }
  return r;
}

relay::Offset FakeKafka::append(KafkaTopic& topic, relay::Partition partition, KafkaRecord record) {
  auto& log = topic.logs[partition.value];
  record.appended = next_++;
  log.push_back(std::move(record));
  return relay::Offset{std::ssize(log) - 1};
}

}  // namespace outbox::test
