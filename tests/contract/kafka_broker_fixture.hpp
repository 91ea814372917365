#pragma once
// A KafkaBroker on a loop of its own, over any KafkaCluster, with its log kept.

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "relay/kafka/broker.hpp"
#include "tests/contract/broker_contract.hpp"
#include "tests/support/kafka.hpp"

namespace outbox::test {

class KafkaBrokerFixture {
 public:
  explicit KafkaBrokerFixture(KafkaCluster& cluster, relay::KafkaOptions options = {}) : cluster_(cluster) {
    options.properties.emplace("bootstrap.servers", cluster.bootstrap());
    options.envelope.source = "contract";
    options.on_log = [this](int, std::string_view, std::string_view text) { log.emplace_back(text); };
    auto made = relay::KafkaBroker::make(context_, std::move(options));
    if (!made) throw std::runtime_error(made.error().text());
    broker_ = std::move(*made);
  }

  relay::KafkaBroker& broker() { return *broker_; }
  KafkaCluster& cluster() { return cluster_; }

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
  std::vector<StoredRecord> stored(const std::string& topic) {
    std::vector<StoredRecord> records;
    for (auto& found : cluster_.read_all(topic)) {
      records.push_back({found.key, found.body, found.headers, found.partition, found.offset});
    }
    return records;
  }

  std::vector<std::string> log;

 private:
  KafkaCluster& cluster_;
  boost::asio::io_context context_;
  std::unique_ptr<relay::KafkaBroker> broker_;
};

}  // namespace outbox::test
