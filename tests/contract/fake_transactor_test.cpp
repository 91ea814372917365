// The stand-in that the simulation trusts keeps to the transactor's contract, without faults and with them.

#include "tests/support/fakes/fake_transactor.hpp"

#include <string>

#include "tests/contract/transactor_contract.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

class FakeTransactorFixture {
 public:
  relay::Transactor& transactor(Who who) { return who == Who::one ? one_ : other_; }
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
  std::optional<std::string> closed_topic() {
    std::string name = topic(1);
    kafka_.find(name)->refuses_transactions = true;
    return name;
  }
  std::vector<StoredRecord> committed(const std::string& topic) {
    std::vector<StoredRecord> records;
    for (const auto& [partition, log] : kafka_.find(topic)->logs)
      for (std::size_t at = 0; at < log.size(); ++at)
        records.push_back(
            {log[at].key, log[at].body, log[at].headers, partition, static_cast<std::int64_t>(at)});
    return records;
  }

 private:
  SimClock clock_;
  SimLoop loop_{clock_};
  FakeKafka kafka_;
  FakeCoordinator coordinator_;
  Chance chance_{1};
  TransactorFaults faults_;
  FakeTransactor one_{clock_, loop_, kafka_, coordinator_, chance_, faults_};
  FakeTransactor other_{clock_, loop_, kafka_, coordinator_, chance_, faults_};
  int topics_ = 0;
};

}  // namespace

TYPE_TO_STRING(FakeTransactorFixture);
OUTBOX_TRANSACTOR_CONTRACT(FakeTransactorFixture);
