#include "tests/contract/kafka_transactor_fixture.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

struct TransactionalKafka : KafkaTransactorFixture {
  TransactionalKafka() : KafkaTransactorFixture(KafkaCluster::shared()) {}
};

}  // namespace

TYPE_TO_STRING(TransactionalKafka);
OUTBOX_TRANSACTOR_CONTRACT(TransactionalKafka);
