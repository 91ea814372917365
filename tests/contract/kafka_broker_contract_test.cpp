#include "tests/contract/kafka_broker_fixture.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

KafkaCluster& mock_cluster() {
  static KafkaCluster cluster{{.kind = KafkaKind::mock}};
  return cluster;
}

struct SharedKafka : KafkaBrokerFixture {
  static constexpr bool topics_make_themselves = false;
  SharedKafka() : KafkaBrokerFixture(KafkaCluster::shared()) {}
};

struct MockKafka : KafkaBrokerFixture {
  static constexpr bool topics_make_themselves = true;  // whatever a client says about it
  MockKafka() : KafkaBrokerFixture(mock_cluster()) {}
};

}  // namespace

TYPE_TO_STRING(SharedKafka);
TYPE_TO_STRING(MockKafka);
OUTBOX_BROKER_CONTRACT(SharedKafka);
OUTBOX_BROKER_CONTRACT(MockKafka);
