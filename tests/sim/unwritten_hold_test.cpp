// A topic's hold that cannot be written, while a claim is under way that left out the topic's first rows.

#include <doctest/doctest.h>

#include <functional>
#include <utility>
#include <vector>

#include "relay/shell/pipeline.hpp"
#include "tests/support/fakes/fake_broker.hpp"
#include "tests/support/fakes/fake_source.hpp"

using namespace outbox;
using namespace outbox::test;
using namespace outbox::relay;
using namespace std::chrono_literals;

namespace {

// Answers that are kept back while the test wants it.
class Gatekeeper {
 public:
  bool shut = false;
  [[nodiscard]] std::size_t kept() const { return kept_.size(); }
  void pass(std::function<void()> answer) {
    if (shut)
      kept_.push_back(std::move(answer));
    else
      answer();
  }
  void let_through() {
    for (auto& answer : std::exchange(kept_, {})) answer();
  }

 private:
  std::vector<std::function<void()>> kept_;
};

class UnwillingSource : public FakeSource {
 public:
  using FakeSource::FakeSource;
  void claim(ClaimRequest request, Done<Batch> done) override {
    FakeSource::claim(std::move(request), [this, done = std::move(done)](Result<Batch> batch) {
      claims.pass([done, batch = std::move(batch)] { done(batch); });
    });
  }
  void hold(HoldTarget, std::string, DoneStatus done) override {
    holds_refused += 1;
    done(failure(Disposition::retry, "no disk left"));
  }
  Gatekeeper claims;
  int holds_refused = 0;
};

class SlowBroker : public FakeBroker {
 public:
  using FakeBroker::FakeBroker;
  void look_up(std::string topic, Done<TopicFacts> done) override {
    FakeBroker::look_up(std::move(topic), [this, done = std::move(done)](Result<TopicFacts> facts) {
      look_ups.pass([done, facts = std::move(facts)] { done(facts); });
    });
  }
  Gatekeeper look_ups;
};

}  // namespace

TEST_CASE("a topic's hold that cannot be written lets no later row pass those that were left for it") {
  Chance chance{1};
  SimClock clock;
  SimLoop loop{clock};
  FakeDatabase database;
  FakeKafka kafka;
  const SourceFaults source_faults;
  const BrokerFaults broker_faults;
  UnwillingSource source{clock, loop, database, chance, source_faults};
  SlowBroker broker{clock, loop, kafka, chance, broker_faults};
  PipelineOptions options;
  options.name = options.owner = "one";
  options.waking = Waking::poll;
  Pipeline pipeline(options, loop, source, broker, log::Logger{});
  pipeline.start();
  const auto run = [&](Millis time) { clock.run(clock.now() + time); };
  const auto insert = [&](const char* body) {
    StoredRow row;
    row.topic = "late";
    row.key = "k";
    row.body = body;
    row.shard = Shard{1};
    const RowId id = database.insert(row);
    database.commit(id);
    return id;
  };

  broker.look_ups.shut = true;
  const RowId first = insert("first");
  run(1s);
  REQUIRE(broker.look_ups.kept() == 1);  // it waits to be told of its topic
  source.claims.shut = true;
  const RowId second = insert("second");
  run(1s);
  REQUIRE(source.claims.kept() > 0);  // it brings the second, and left out the first
  broker.look_ups.shut = false;
  broker.look_ups.let_through();  // there is no such topic
  run(10ms);
  REQUIRE(source.holds_refused == 1);
  kafka.create("late", 1);
  source.claims.let_through();
  run(1s);  // no other claim is answered yet
  CHECK(kafka.find("late")->logs[0].empty());
  source.claims.shut = false;
  source.claims.let_through();
  run(10s);
  CHECK(database.row(first).status == RowStatus::sent);
  CHECK(database.row(second).status == RowStatus::sent);
  CHECK(database.row(first).offset->value < database.row(second).offset->value);
  loop.kill();
}
