// Topics and attempts of the real shell over the stand-ins, on a virtual clock.

#include "relay/shell/topics.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>

#include "relay/shell/pipeline.hpp"
#include "tests/support/fakes/fake_broker.hpp"
#include "tests/support/fakes/fake_source.hpp"
#include "tests/support/fakes/fake_transactor.hpp"

using namespace outbox;
using namespace outbox::test;
using namespace outbox::relay;
using namespace std::chrono_literals;

namespace {

// A broker whose first answers to some messages are refusals that may pass.
class GrudgingBroker : public FakeBroker {
 public:
  using FakeBroker::FakeBroker;
  void start(Events events) override {
    told_ = events.on_delivered;
    events.on_delivered = [this](std::span<const Delivery> reports) { pass_on(reports); };
    FakeBroker::start(std::move(events));
  }
  [[nodiscard]] Result<Accepted> publish(const Outgoing& out) override {
    if (out.message->body && out.message->body->starts_with("bad")) bad_[out.token] = true;
    return FakeBroker::publish(out);
  }
  std::int64_t refusals_left = 0;  // of bad ones
  std::int64_t refused = 0;
  Refusal refusal = Refusal::unsent;

 private:
  void pass_on(std::span<const Delivery> reports) {
    std::vector<Delivery> told(reports.begin(), reports.end());
    for (Delivery& d : told) {
      if (bad_.erase(d.token) == 0 || refusals_left == 0) continue;
      refusals_left -= 1;
      refused += 1;
      d = {d.token, d.partition, Offset{}, refusal, "not today", true};
    }
    told_(told);
  }
  std::function<void(std::span<const Delivery>)> told_;
  std::map<Token, bool> bad_;
};

enum class Deliver { at_least_once, exactly_once };

struct Bench {
  explicit Bench(PipelineOptions options, Deliver deliver = Deliver::at_least_once) {
    kafka.create("t", 1);
    options.name = "bench";
    options.owner = "one";
    options.waking = Waking::poll;
    const log::Logger logger(log::Level::info, log::Format::text,
                             [this](log::Level, const std::string& line) { said.push_back(line); });
    pipeline = std::make_unique<Pipeline>(std::move(options), loop, source, broker, logger,
                                          deliver == Deliver::exactly_once ? &transactor : nullptr);
    pipeline->start();
  }
  RowId insert(const std::string& topic, const std::string& key, const std::string& body) {
    StoredRow row;
    row.topic = topic;
    row.key = key;
    row.body = body;
    row.shard = Shard{1};
    const RowId id = database.insert(row);
    database.commit(id);
    return id;
  }
  RowId insert_for(Partition asked, const std::string& key) {
    StoredRow row;
    row.topic = "t";
    row.key = key;
    row.body = "1";
    row.shard = Shard{1};
    row.asked = asked;
    const RowId id = database.insert(row);
    database.commit(id);
    return id;
  }
  [[nodiscard]] RowStatus status(RowId id) { return database.row(id).status; }
  void run(Millis time) { clock.run(clock.now() + time); }
  [[nodiscard]] std::int64_t times_said(std::string_view event) const {
    return std::ranges::count_if(
        said, [&](const std::string& line) { return line.find(event) != std::string::npos; });
  }

  Chance chance{1};
  SimClock clock;
  SimLoop loop{clock};
  FakeDatabase database;
  FakeKafka kafka;
  SourceFaults source_faults;
  BrokerFaults broker_faults;
  FakeSource source{clock, loop, database, chance, source_faults};
  GrudgingBroker broker{clock, loop, kafka, chance, broker_faults};
  FakeCoordinator coordinator;
  TransactorFaults transactor_faults;
  FakeTransactor transactor{clock, loop, kafka, coordinator, chance, transactor_faults};
  std::vector<std::string> said;
  std::unique_ptr<Pipeline> pipeline;
};

}  // namespace

TEST_CASE("what may pass is tried again until it is taken, and its key waits for it in order") {
  Bench bench({});
  bench.broker.refusals_left = 20;
  const RowId bad = bench.insert("t", "k", "bad");
  bench.run(500ms);
  const RowId next = bench.insert("t", "k", "next");
  bench.run(120s);
  CHECK(bench.broker.refused == 20);
  CHECK(bench.status(bad) == RowStatus::sent);
  CHECK(bench.status(next) == RowStatus::sent);
  const auto& log = bench.kafka.find("t")->logs[0];
  CHECK(bench.database.row(bad).offset->value < bench.database.row(next).offset->value);
  CHECK(log.size() >= 2);
}

TEST_CASE("with max_attempts it is dead after so many refusals of its own, and its key is held") {
  PipelineOptions options;
  options.max_attempts = 3;
  Bench bench(std::move(options));
  bench.broker.refusals_left = 1'000'000;
  const RowId bad = bench.insert("t", "k", "bad");
  bench.run(500ms);
  const RowId next = bench.insert("t", "k", "next");
  const RowId other = bench.insert("t", "other", "good");
  bench.run(120s);
  CHECK(bench.status(bad) == RowStatus::dead);
  CHECK(bench.database.row(bad).last_error == "not today");
  CHECK(bench.broker.refused <= 4);  // one of them perhaps in company
  CHECK(bench.status(next) == RowStatus::held);
  CHECK(bench.status(other) == RowStatus::sent);
}

TEST_CASE("a refusal that may pass makes its topic rest, so that it is not repeated at once") {
  Bench bench({});
  bench.broker.refusals_left = 1'000'000;
  bench.insert("t", "k", "bad");
  bench.run(60s);
  CHECK(bench.broker.refused > 5);
  CHECK(bench.broker.refused < 40);
}

TEST_CASE(
    "of a great many topics only the latest are remembered, and none with something to do is forgotten") {
  PipelineOptions options;
  options.topics_max = 20;
  Bench bench(std::move(options));
  std::vector<RowId> rows;
  for (int i = 0; i < 2000; ++i) {
    const std::string topic = "t" + std::to_string(i % 400);
    bench.kafka.create(topic, 1);
    rows.push_back(bench.insert(topic, "k", std::to_string(i)));
    if (i % 40 == 0) bench.run(300ms);
  }
  bench.run(30s);
  for (const RowId row : rows) CHECK(bench.status(row) == RowStatus::sent);
  CHECK(bench.pipeline->topics_remembered() <= 20);
}

TEST_CASE("held topics are probed a few at a time, and all are let go in the end") {
  PipelineOptions options;
  options.topics_max = 20;
  options.probes_max = 2;
  Bench bench(std::move(options));
  std::vector<RowId> rows;
  rows.reserve(100);
  for (int i = 0; i < 100; ++i) rows.push_back(bench.insert("late" + std::to_string(i), "k", "1"));
  bench.run(10s);
  for (const RowId row : rows) CHECK(bench.status(row) == RowStatus::held);
  for (int i = 0; i < 100; ++i) bench.kafka.create("late" + std::to_string(i), 1);
  bench.run(180s);
  for (const RowId row : rows) CHECK(bench.status(row) == RowStatus::sent);
  CHECK(bench.pipeline->topics_remembered() <= 20);
}

TEST_CASE(
    "that a topic waits with more partitions for one that is away is said once, and it goes on when it is "
    "back") {
  PipelineOptions options;
  options.facts_fresh_for = Millis{2000};
  Bench bench(std::move(options));
  const RowId first = bench.insert("t", "k", "1");
  bench.run(1s);
  CHECK(bench.status(first) == RowStatus::sent);
  bench.kafka.partition_away_until[{"t", 0}] = bench.clock.now() + 30s;
  const RowId owed = bench.insert("t", "k", "2");
  bench.run(2s);
  bench.kafka.create("t", 3);
  bench.run(10s);
  const RowId waits = bench.insert("t", "k2", "3");
  bench.run(5s);
  CHECK(bench.times_said("topic_partitions_wait") == 1);
  CHECK(bench.status(waits) == RowStatus::pending);
  bench.run(30s);
  CHECK(bench.status(owed) == RowStatus::sent);
  CHECK(bench.status(waits) == RowStatus::sent);
  CHECK(bench.times_said("topic_partitions_wait") == 1);
}

TEST_CASE(
    "a topic that is there and whose messages are refused is let go ever less often, until one of them "
    "passes") {
  Bench bench({});
  bench.broker.refusal = Refusal::topic;
  bench.broker.refusals_left = 1'000'000;
  std::vector<RowId> rows;
  for (int i = 0; i < 20; ++i) rows.push_back(bench.insert("t", "k" + std::to_string(i), "bad"));
  bench.run(600s);
  const std::int64_t first = bench.broker.refused;
  CHECK(first >= 3 * 20);
  CHECK(first <= 9 * 20);  // every second it would be 600 times
  bench.run(3600s);
  CHECK(bench.broker.refused - first <= 12 * 20);
  bench.broker.refusals_left = 0;
  bench.run(610s);
  for (const RowId row : rows) CHECK(bench.status(row) == RowStatus::sent);
  const std::int64_t before = bench.broker.refused;
  bench.broker.refusals_left = 40;  // the next trouble begins with a short wait again
  const RowId row = bench.insert("t", "k", "bad");
  bench.run(60s);
  CHECK(bench.broker.refused - before >= 3);
  bench.broker.refusals_left = 0;
  bench.run(60s);
  CHECK(bench.status(row) == RowStatus::sent);
}

TEST_CASE("a row that names a partition which its topic has only just got goes there, and one beyond dies") {
  Deliver deliver = Deliver::at_least_once;
  SUBCASE("at least once") {
    deliver = Deliver::at_least_once;
  }
  SUBCASE("exactly once") {
    deliver = Deliver::exactly_once;
  }
  Bench bench({}, deliver);
  CHECK(bench.insert("t", "k", "first") == RowId{1});
  bench.run(1s);
  CHECK(bench.status(RowId{1}) == RowStatus::sent);
  bench.kafka.create("t", 4);
  const RowId id = bench.insert_for(Partition{2}, "k2");
  const RowId beyond = bench.insert_for(Partition{4}, "k3");
  bench.run(2s);
  CHECK(bench.status(id) == RowStatus::sent);
  CHECK(bench.kafka.find("t")->logs[2].size() >= 1);
  CHECK(bench.status(beyond) == RowStatus::dead);
}

TEST_CASE(
    "a topic that is gone is held, also where the first row that waits for it does not fit what it was") {
  Deliver deliver = Deliver::at_least_once;
  SUBCASE("at least once") {
    deliver = Deliver::at_least_once;
  }
  SUBCASE("exactly once") {
    deliver = Deliver::exactly_once;
  }
  Bench bench({}, deliver);
  CHECK(bench.insert("t", "k", "first") == RowId{1});
  bench.run(1s);
  CHECK(bench.status(RowId{1}) == RowStatus::sent);
  bench.kafka.remove("t");
  const RowId row = bench.insert_for(Partition{2}, "k2");
  bench.run(5s);
  CHECK(bench.status(row) == RowStatus::held);
  bench.kafka.create("t", 4);
  bench.run(60s);
  CHECK(bench.status(row) == RowStatus::sent);
}
