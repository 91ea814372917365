#pragma once
// Port Transactor over a FakeKafka. The coordinator is the cluster's: it knows for each transactional id the
// newest epoch and what was committed last, and takes a commit only from the newest epoch. Each commit
// travels; with `faults` its answer can be lost, or come before the commit itself arrives, and it then
// arrives or not, unless a later open has fenced it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "relay/ports/transactor.hpp"
#include "tests/support/fakes/fake_kafka.hpp"
#include "tests/support/fakes/sim_loop.hpp"

namespace outbox::test {

struct TransactorFaults {
  std::int64_t open_fails_one_in = 0;
  std::int64_t lost_commit_one_in = 0;  ///< the commit never arrives, and the answer says it is not known
  std::int64_t lost_answer_one_in = 0;  ///< committed, and the answer says it is not known
  std::int64_t late_commit_one_in = 0;  ///< answered as not known, and it arrives after that
  std::int64_t slow_one_in = 0;         ///< seconds instead of milliseconds
};

/// Of one cluster, for all processes.
struct FakeCoordinator {
  struct Id {
    std::int64_t epoch = 0;
    std::vector<relay::LedgerRow> last;
    std::vector<relay::LedgerRow> before;  ///< what was committed before that; for a mutant
  };
  std::map<relay::LedgerLane, Id> ids;
  std::int64_t commits = 0;
};

class FakeTransactor : public relay::Transactor {
 public:
  FakeTransactor(SimClock& clock, SimLoop& loop, FakeKafka& kafka, FakeCoordinator& coordinator,
                 Chance& chance, const TransactorFaults& faults)
      : clock_(clock),
        loop_(loop),
        kafka_(kafka),
        coordinator_(coordinator),
        chance_(chance),
        faults_(faults) {}
  ~FakeTransactor() override { kill(); }

  void open(relay::OpenRequest request, relay::Done<std::vector<relay::LedgerRow>> done) override;
  void send(relay::LedgerLane ledger_lane, std::vector<relay::Outgoing> messages, Ended ended) override;
  void abandon(relay::LedgerLane ledger_lane) override;
  void close(relay::LedgerLane ledger_lane) override;
  void stop() override { kill(); }

  std::function<void(const relay::Message&)> on_publish = [](const auto&) {};  ///< the oracle's eye

  /// kill -9: nothing is answered any more; a commit on its way may still arrive.
  void kill() { *alive_ = false; }

 protected:
  /// What a new owner is told; mutants tell something else.
  [[nodiscard]] virtual std::vector<relay::LedgerRow> last_of(const FakeCoordinator::Id& id) const {
    return id.last;
  }
  [[nodiscard]] virtual bool fences() const { return true; }

 private:
  struct Carried {
    std::string topic;
    relay::Partition partition;
    KafkaRecord record;
    std::int64_t bytes = 0;
    relay::LedgerRow row;
  };
  struct Transaction {
    relay::LedgerLane ledger_lane;
    std::int64_t epoch = 0;
    std::vector<Carried> carried;
    bool abandoned = false;
    bool answered = false;
  };
  using Shared = std::shared_ptr<Transaction>;

  void when_awake(std::function<void()> step);
  void take_lane(relay::LedgerLane ledger_lane, relay::Done<std::vector<relay::LedgerRow>> done,
                 std::optional<std::int64_t> epoch, std::int64_t opening);
  [[nodiscard]] std::vector<relay::RefusedMessage> refusals(const Transaction& transaction);
  void arrive(const Shared& transaction, const Ended& ended);
  [[nodiscard]] relay::TransactionEnd commit(const Transaction& transaction);
  void answer(const Shared& transaction, const Ended& ended, relay::TransactionEnd end);
  [[nodiscard]] Micros travel();

  SimClock& clock_;
  SimLoop& loop_;
  FakeKafka& kafka_;
  FakeCoordinator& coordinator_;
  Chance& chance_;
  const TransactorFaults& faults_;
  std::map<relay::LedgerLane, std::int64_t> epochs_;    // of the lanes that are open here
  std::map<relay::LedgerLane, std::int64_t> openings_;  // the latest of each; an earlier one opens nothing
  std::map<relay::LedgerLane, Shared> under_way_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace outbox::test
