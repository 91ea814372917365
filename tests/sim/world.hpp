#pragma once
// One simulated world: a database, a cluster, writers, and relays that run the real core and shell and share
// the lanes. Faults strike while the writers write; then they end, and everything must come to rest. One
// seed, one history.
//
// Watched all the time: a row is marked only where Kafka has it and under a lease that stands; a row is
// published only by who has its lane, in its own time, while no other has it.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "relay/shell/pipeline.hpp"
#include "tests/support/fakes/fake_broker.hpp"
#include "tests/support/fakes/fake_source.hpp"
#include "tests/support/fakes/fake_transactor.hpp"

namespace outbox::test {

struct SeedChoice {
  std::optional<std::uint64_t> only;
  std::uint64_t count = 3400;  ///< seven tests run them: 23,800 histories, about a minute of one core
};
SeedChoice& seed_choice();

/// A relay made wrong on purpose: the oracle must catch each of these.
enum class Mutant {
  none,
  marks_before_ack,
  claims_by_cursor,
  hides_due_rows,
  forgets_in_flight,
  opens_the_gate,
  ignores_epochs,        ///< a mark does not check the lane's epoch
  gives_back_in_flight,  ///< a surplus is given back at once
  never_fences,          ///< its clock stands still while it is paused
  // exactly once:
  forgets_ledger,       ///< a lane is opened as if its ledger were empty
  reads_ledger_short,   ///< the ledger's newest record is not seen
  fences_nobody,        ///< a commit of an earlier owner is taken
  marks_late,           ///< a mark is answered before it is durable
  ignores_generations,  ///< the ledger of an earlier sending vouches for a replay
  leaves_old_ledgers,   ///< another count of lanes begins as if there were no ledgers of the old one
};

enum class Promise { at_least_once, exactly_once };

enum class Faults { off, on };
enum class Members { stay, come_and_go };       ///< by SIGTERM and start, which are no faults
enum class ServerClock { steady, jumps };       ///< by a day, each way
enum class Cluster { takes, refuses_for_now };  ///< it may answer that it takes a batch later
enum class Lanes { four, differ };              ///< what each start asks for

struct WorldOptions {
  std::uint64_t seed = 1;
  Faults faults = Faults::on;
  std::int32_t relays = 1;
  Members members = Members::stay;
  ServerClock server_clock = ServerClock::steady;
  Cluster cluster = Cluster::takes;
  Lanes lanes = Lanes::four;
  std::int32_t rows = 200;
  relay::Waking waking = relay::Waking::notify;
  relay::AfterSent after_sent = relay::AfterSent::mark;
  Promise promise = Promise::at_least_once;
  Mutant mutant = Mutant::none;
};

/// What the writers did, which the table may not tell any more.
struct History {
  std::set<std::int64_t> committed;
  std::map<std::int64_t, std::int64_t> replays;  ///< by row: how often
  std::set<std::int64_t> scheduled;  ///< rows with an available_at: their place is decided by time, not by id
  struct Times {
    WallTime created_at;
    std::optional<WallTime> available_at;
  };
  std::map<std::int64_t, Times> times;  ///< of every row
};

class World {
 public:
  explicit World(WorldOptions options);
  ~World();
  /// Runs it to its end. Answers what was found wrong; empty: every law holds.
  [[nodiscard]] std::vector<std::string> run();
  [[nodiscard]] std::int64_t duplicates() const;

 private:
  struct Process {
    std::unique_ptr<SimLoop> loop;
    std::unique_ptr<FakeSource> source;
    std::unique_ptr<FakeBroker> broker;
    std::unique_ptr<FakeTransactor> transactor;
    std::unique_ptr<relay::Pipeline> pipeline;
    [[nodiscard]] bool owns(relay::Shard shard) const;  ///< by its own clock
  };
  void write();
  void insert_row();
  void try_to_cancel(relay::RowId id);
  void strike();
  void come_and_go();
  void replay_row();
  void count_copies();
  void stop_and_boot(std::size_t which, Micros pause);
  void mend();
  void boot(std::size_t which);
  void published(const Process& by, const relay::Message& message);
  [[nodiscard]] relay::PipelineOptions pipeline_options();
  void kill(std::size_t which);
  [[nodiscard]] bool at_rest() const;
  void watch_marks();
  void judge_the_judgement();

  WorldOptions options_;
  Chance chance_;
  SimClock clock_;
  FakeDatabase database_;
  FakeKafka kafka_;
  SourceFaults source_faults_;
  BrokerFaults broker_faults_;
  FakeCoordinator coordinator_;
  TransactorFaults transactor_faults_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<Process> to_bury_;  ///< what a killed process had under way may still reach the world
  std::set<std::string> locked_keys_;
  History history_;
  std::int32_t written_ = 0;
  std::int32_t open_transactions_ = 0;
  std::int32_t boots_ = 0;
  bool striking_ = true;
  std::vector<std::string> wrong_;
};

/// What the database and the cluster say in the end; each finding is one line.
[[nodiscard]] std::vector<std::string> judge(const FakeDatabase& database, const FakeKafka& kafka,
                                             relay::AfterSent after_sent, const History& history);

/// Stand-ins with one fault of logic each.
[[nodiscard]] std::unique_ptr<FakeSource> make_source(Mutant mutant, SimClock& clock, relay::Loop& loop,
                                                      FakeDatabase& database, Chance& chance,
                                                      const SourceFaults& faults);
[[nodiscard]] std::unique_ptr<FakeBroker> make_broker(Mutant mutant, SimClock& clock, relay::Loop& loop,
                                                      FakeKafka& kafka, Chance& chance,
                                                      const BrokerFaults& faults);
[[nodiscard]] std::unique_ptr<FakeTransactor> make_transactor(Mutant mutant, SimClock& clock, SimLoop& loop,
                                                              FakeKafka& kafka, FakeCoordinator& coordinator,
                                                              Chance& chance, const TransactorFaults& faults);

}  // namespace outbox::test
