#include <doctest/doctest.h>
#include <librdkafka/rdkafka.h>

#include <stdexcept>
#include <string>

#include "tests/support/kafka.hpp"
#include "tests/support/kafka/handles.hpp"

namespace {

using outbox::test::Client;
using outbox::test::KafkaCluster;
using outbox::test::KafkaKind;

// Numbers 0 to count - 1, spread over the partitions in turn.
void produce_numbers(const KafkaCluster& cluster, const std::string& topic, int partitions, int count) {
  const Client client = outbox::test::make_client(
      RD_KAFKA_PRODUCER, {{"bootstrap.servers", cluster.bootstrap()}, {"enable.idempotence", "true"}});
  for (int i = 0; i < count; ++i) {
    const auto body = std::to_string(i);
    rd_kafka_producev(client.get(), RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(i % partitions),
                      RD_KAFKA_V_KEY("", 0), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                      RD_KAFKA_V_HEADER("n", body.data(), static_cast<ssize_t>(body.size())),
                      RD_KAFKA_V_VALUE(const_cast<char*>(body.data()), body.size()), RD_KAFKA_V_END);
  }
  REQUIRE(rd_kafka_flush(client.get(), 30'000) == RD_KAFKA_RESP_ERR_NO_ERROR);
}

void check_reads_back(KafkaCluster& cluster) {
  const auto topic = cluster.new_topic("numbers", 3);
  produce_numbers(cluster, topic, 3, 100);
  const auto records = cluster.read_all(topic);
  REQUIRE(records.size() == 100);
  for (const auto& record : records) {
    CHECK(*record.body == std::to_string(record.offset * 3 + record.partition));
    CHECK(record.header("n") == record.body);
    CHECK(record.key == "");
  }
}

}  // namespace

TEST_CASE("what was produced to the shared cluster is read back, all of it") {
  auto& cluster = KafkaCluster::shared();
  check_reads_back(cluster);
  CHECK(cluster.read_all(cluster.new_topic("empty", 2)).empty());
}

TEST_CASE("a mock cluster reads back as a real one does") {
  KafkaCluster cluster{{.kind = KafkaKind::mock}};
  check_reads_back(cluster);
}

TEST_CASE("reading a topic that does not exist is an error, and does not create it") {
  auto& cluster = KafkaCluster::shared();
  const auto topic = KafkaCluster::unique_topic("missing");
  CHECK_THROWS_AS((void)cluster.read_all(topic), std::runtime_error);
  CHECK_THROWS_AS((void)cluster.read_all(topic), std::runtime_error);
}

TEST_CASE("a killed broker comes back with its records") {
  KafkaCluster cluster;
  if (!cluster.real()) return;
  const auto topic = cluster.new_topic("kept");
  produce_numbers(cluster, topic, 1, 10);
  cluster.kill();
  cluster.start();
  CHECK(cluster.read_all(topic).size() == 10);
  cluster.pause();
  cluster.resume();
  cluster.add_partitions(topic, 4);
  CHECK(cluster.read_all(topic).size() == 10);
}
