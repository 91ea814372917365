// The stand-in that the simulation trusts keeps to the broker's contract.

#include "tests/support/fakes/fake_broker.hpp"

#include <string>

#include "tests/contract/broker_contract.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

class FakeKafkaFixture {
 public:
  static constexpr bool topics_make_themselves = false;

  relay::Broker& broker() { return broker_; }
  bool until(const std::function<bool()>& holds) {
    for (int turn = 0; turn < 100'000 && !holds(); ++turn) clock_.run(clock_.now() + Millis{1});
    return holds();
  }
  void run_a_while() { clock_.run(clock_.now() + Millis{10'000}); }
  std::string topic(int partitions) {
    std::string name = "topic-" + std::to_string(++topics_);
    kafka_.create(name, partitions);
    return name;
  }
  std::string missing_topic() { return "missing"; }
  std::vector<StoredRecord> stored(const std::string& topic) {
    std::vector<StoredRecord> records;
    for (const auto& [partition, log] : kafka_.find(topic)->logs) {
      for (std::size_t at = 0; at < log.size(); ++at)
        records.push_back(
            {log[at].key, log[at].body, log[at].headers, partition, static_cast<std::int64_t>(at)});
    }
    return records;
  }

 private:
  SimClock clock_;
  SimLoop loop_{clock_};
  FakeKafka kafka_;
  Chance chance_{1};
  BrokerFaults faults_;
  FakeBroker broker_{clock_, loop_, kafka_, chance_, faults_};
  int topics_ = 0;
};

}  // namespace

TYPE_TO_STRING(FakeKafkaFixture);
OUTBOX_BROKER_CONTRACT(FakeKafkaFixture);
