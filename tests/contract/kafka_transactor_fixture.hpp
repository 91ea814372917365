#pragma once
// Two KafkaTransactors on one loop, over a KafkaCluster, with a ledger topic of their own.

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "relay/kafka/producer.hpp"
#include "relay/kafka/transactor.hpp"
#include "tests/contract/transactor_contract.hpp"
#include "tests/support/kafka.hpp"

namespace outbox::test {

class KafkaTransactorFixture {
 public:
  explicit KafkaTransactorFixture(KafkaCluster& cluster) : cluster_(cluster) {}

  relay::KafkaTransactorOptions options() {
    relay::KafkaTransactorOptions options;
    options.kafka.properties = {{"bootstrap.servers", cluster_.bootstrap()}};
    options.kafka.envelope.source = "contract";
    options.pipeline = ledger;  // cases run side by side: one must not fence another
    options.ledger_topic = ledger;
    return options;
  }
  relay::Transactor& transactor(Who who) {
    auto& slot = who == Who::one ? one_ : other_;
    if (!slot) slot = std::make_unique<relay::KafkaTransactor>(context_, options());
    return *slot;
  }
  bool until(const std::function<bool()>& holds,
             std::chrono::milliseconds patience = std::chrono::seconds{60}) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      context_.restart();
      context_.run_one_for(std::chrono::milliseconds{20});
    }
    return true;
  }
  void run_a_while() {
    until([] { return false; }, std::chrono::milliseconds{300});
  }
  std::string topic(int partitions) { return cluster_.new_topic("contract", partitions); }
  std::string missing_topic() { return KafkaCluster::unique_topic("missing"); }
  /// Kafka's own; a mock has none.
  std::optional<std::string> closed_topic() {
    return cluster_.real() ? std::optional<std::string>{"__transaction_state"} : std::nullopt;
  }
  std::vector<StoredRecord> committed(const std::string& topic) {
    std::vector<StoredRecord> records;
    for (auto& found : cluster_.read_all(topic, Isolation::read_committed))
      records.push_back({found.key, found.body, found.headers, found.partition, found.offset});
    return records;
  }
  KafkaCluster& cluster() { return cluster_; }
  /// As a relay sends a row, to partition 0.
  void write_row(const std::string& topic, const std::string& key, const std::string& body);
  /// Transactions of one record each that are aborted, in partition 0.
  void write_aborted(const std::string& topic, int count);

  const std::string ledger = KafkaCluster::unique_topic("ledger");

 private:
  KafkaCluster& cluster_;
  boost::asio::io_context context_;
  std::unique_ptr<relay::KafkaTransactor> one_;
  std::unique_ptr<relay::KafkaTransactor> other_;
};

inline void KafkaTransactorFixture::write_aborted(const std::string& topic, int count) {
  relay::KafkaOptions kafka;
  kafka.properties = {{"bootstrap.servers", cluster_.bootstrap()}};
  kafka.transactional_id = KafkaCluster::unique_topic("aborting");
  const auto producer = relay::KafkaProducer::make(kafka, relay::no_wake_fd).value();
  REQUIRE(rd_kafka_init_transactions(producer->handle(), 20'000) == nullptr);
  const OwnedMessage record{topic, "1/0", "aborted"};
  for (int n = 0; n < count; ++n) {
    REQUIRE(rd_kafka_begin_transaction(producer->handle()) == nullptr);
    REQUIRE(producer->produce({&record.view(), relay::Partition{0}, 0}, record.view().topic, {}) ==
            RD_KAFKA_RESP_ERR_NO_ERROR);
    std::vector<relay::Delivery> deliveries;
    while (producer->outstanding() > 0)
      if (const auto event = producer->poll(Millis{100});
          event && rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_DR)
        producer->take_deliveries(event.get(), deliveries);
    REQUIRE(rd_kafka_abort_transaction(producer->handle(), 20'000) == nullptr);
  }
}

inline void KafkaTransactorFixture::write_row(const std::string& topic, const std::string& key,
                                              const std::string& body) {
  relay::KafkaOptions kafka;
  kafka.properties = {{"bootstrap.servers", cluster_.bootstrap()}};
  const auto producer = relay::KafkaProducer::make(kafka, relay::no_wake_fd).value();
  const OwnedMessage row{topic, key, body};
  relay::Envelope envelope{{.source = "another"}};
  REQUIRE(producer->produce({&row.view(), relay::Partition{0}, 0}, topic,
                            envelope.headers(row.view()).value()) == RD_KAFKA_RESP_ERR_NO_ERROR);
  std::vector<relay::Delivery> deliveries;
  while (producer->outstanding() > 0)
    if (const auto event = producer->poll(Millis{100});
        event && rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_DR)
      producer->take_deliveries(event.get(), deliveries);
  REQUIRE(deliveries.size() == 1);
  REQUIRE(!deliveries[0].refusal);
}

}  // namespace outbox::test
