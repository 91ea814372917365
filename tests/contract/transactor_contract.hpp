#pragma once
// What every Transactor keeps to, as test cases over a fixture. A fixture is a cluster with two transactors,
// as two instances of a relay have them:
//
//   Transactor& transactor(Who);
//   bool until(std::function<bool()>);           runs the loop until it holds; false: the deadline has passed
//   void run_a_while();                          gives whatever is left a chance to happen
//   std::string topic(int partitions);           a fresh topic of that many partitions, max.message.bytes 1
//   MiB std::string missing_topic();                 a name that no topic has std::vector<StoredRecord>
//   std::optional<std::string> closed_topic();   one that is there, and for which a whole transaction is refused
//   committed(topic);  what a read_committed reader sees, by partition and offset

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "relay/ports/transactor.hpp"
#include "tests/contract/broker_contract.hpp"

namespace outbox::test {

enum class Who { one, other };

template <class Fixture>
class TransactorRun {
 public:
  using Rows = std::vector<relay::LedgerRow>;
  Fixture fixture;

  explicit TransactorRun(std::int16_t lanes = 4) : lanes_(lanes) { ledger_.bytes[0] = 7; }

  Result<Rows> try_open(Who who, relay::LedgerLane ledger_lane) {
    std::optional<Result<Rows>> answer;
    bool inside = true;
    fixture.transactor(who).open({ledger_, ledger_lane, lanes_, 1'000'000}, [&](Result<Rows> rows) {
      CHECK(!inside);
      CHECK(!answer);
      answer = std::move(rows);
    });
    inside = false;
    REQUIRE(fixture.until([&] { return answer.has_value(); }));
    return *answer;
  }
  /// As a relay does, again until the cluster answers.
  Rows open(Who who, relay::LedgerLane ledger_lane) {
    for (int turn = 0; turn < 10; ++turn) {
      auto rows = try_open(who, ledger_lane);
      if (rows) return *rows;
      MESSAGE(rows.error().text());
      REQUIRE(rows.error().disposition == Disposition::retry);
    }
    FAIL("no open succeeded");
    return {};
  }
  relay::TransactionEnd send(Who who, relay::LedgerLane ledger_lane,
                             const std::vector<std::pair<const OwnedMessage*, int>>& what) {
    std::optional<relay::TransactionEnd> end;
    start(who, ledger_lane, what, end);
    await(who, end);
    if (end->error) MESSAGE(end->error->text());
    return *end;
  }
  void start(Who who, relay::LedgerLane ledger_lane,
             const std::vector<std::pair<const OwnedMessage*, int>>& what,
             std::optional<relay::TransactionEnd>& end) {
    std::vector<relay::Outgoing> messages;
    messages.reserve(what.size());
    for (const auto& [message, partition] : what)
      messages.push_back({&message->view(), relay::Partition{partition}, 0});
    fixture.transactor(who).send(ledger_lane, std::move(messages), [&end](relay::TransactionEnd ended) {
      CHECK(!end);
      end = std::move(ended);
    });
    CHECK(!end);  // no answer comes from inside the call
  }
  /// Where no end comes, nothing looks at the messages any more, which are the test case's and go with it.
  void await(Who who, const std::optional<relay::TransactionEnd>& end) {
    const bool ended = fixture.until([&] { return end.has_value(); });
    if (!ended) fixture.transactor(who).stop();
    REQUIRE(ended);
  }
  std::vector<std::string> bodies(const std::string& topic) {
    std::vector<std::string> out;
    for (const StoredRecord& r : fixture.committed(topic)) out.push_back(r.body.value_or("(null)"));
    return out;
  }

  void lanes(std::int16_t count) { lanes_ = count; }
  void other_outbox() { ledger_.bytes[0] += 1; }

 private:
  Uuid ledger_;
  std::int16_t lanes_;
};

inline constexpr relay::LedgerLane first_lane{1, relay::LaneId{0}};

inline std::string told(const std::vector<std::string>& bodies) {
  std::string out;
  for (const std::string& body : bodies) out += (out.empty() ? "" : " ") + body;
  return out;
}

TEST_CASE_TEMPLATE_DEFINE("a committed transaction is seen whole, in order, and its ledger names its rows",
                          Fixture, transactor_contract_commit) {
  TransactorRun<Fixture> run;
  const std::string topic = run.fixture.topic(2);
  CHECK(run.open(Who::one, first_lane).empty());
  const OwnedMessage a{topic, "k", "a"}, b{topic, "k", "b"}, c{topic, "j", "c"};
  const auto end = run.send(Who::one, first_lane, {{&a, 0}, {&b, 0}, {&c, 1}});
  REQUIRE(end.committed);
  REQUIRE(end.offsets.size() == 3);
  CHECK(told(run.bodies(topic)) == "a b c");
  const auto stored = run.fixture.committed(topic);
  for (std::size_t i = 0; i < 3; ++i) CHECK(stored[i].offset == end.offsets[i].value);
  const auto rows = run.open(Who::other, first_lane);
  CHECK(rows == std::vector<relay::LedgerRow>{
                    {a.view().id, a.view().msg_id, 0, relay::Partition{0}, end.offsets[0]},
                    {b.view().id, b.view().msg_id, 0, relay::Partition{0}, end.offsets[1]},
                    {c.view().id, c.view().msg_id, 0, relay::Partition{1}, end.offsets[2]}});
}

TEST_CASE_TEMPLATE_DEFINE("the ledger tells the newest transaction, and each lane its own", Fixture,
                          transactor_contract_newest) {
  TransactorRun<Fixture> run;
  const std::string topic = run.fixture.topic(1);
  const relay::LedgerLane other_lane{1, relay::LaneId{3}}, later{2, relay::LaneId{0}};
  for (const relay::LedgerLane ledger_lane : {first_lane, other_lane, later})
    CHECK(run.open(Who::one, ledger_lane).empty());
  const OwnedMessage a{topic, "k", "a"}, b{topic, "k", "b"}, c{topic, "k", "c"};
  REQUIRE(run.send(Who::one, first_lane, {{&a, 0}}).committed);
  REQUIRE(run.send(Who::one, first_lane, {{&b, 0}}).committed);
  REQUIRE(run.send(Who::one, other_lane, {{&c, 0}}).committed);
  REQUIRE(run.open(Who::other, first_lane).size() == 1);
  CHECK(run.open(Who::other, first_lane)[0].id == b.view().id);
  REQUIRE(run.open(Who::other, other_lane).size() == 1);
  CHECK(run.open(Who::other, other_lane)[0].id == c.view().id);
  CHECK(run.open(Who::other, later).empty());
}

TEST_CASE_TEMPLATE_DEFINE("whoever opens a lane fences the one before: it commits nothing any more", Fixture,
                          transactor_contract_fence) {
  TransactorRun<Fixture> run;
  const std::string topic = run.fixture.topic(1);
  run.open(Who::one, first_lane);
  CHECK(run.open(Who::other, first_lane).empty());
  const OwnedMessage zombie{topic, "k", "zombie"}, mine{topic, "k", "mine"}, again{topic, "k", "again"};
  const auto end = run.send(Who::one, first_lane, {{&zombie, 0}});
  CHECK(!end.committed);
  CHECK(end.error.has_value());
  CHECK(run.bodies(topic).empty());
  REQUIRE(run.send(Who::other, first_lane, {{&mine, 0}}).committed);
  const auto rows = run.open(Who::one, first_lane);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].id == mine.view().id);
  CHECK(!run.send(Who::other, first_lane, {{&zombie, 0}}).committed);
  REQUIRE(run.send(Who::one, first_lane, {{&again, 0}}).committed);
  CHECK(told(run.bodies(topic)) == "mine again");
}

TEST_CASE_TEMPLATE_DEFINE(
    "a message that Kafka refuses ends its transaction: nothing of it is seen, and it is named", Fixture,
    transactor_contract_refused) {
  TransactorRun<Fixture> run;
  const std::string topic = run.fixture.topic(2);
  run.open(Who::one, first_lane);
  const OwnedMessage before{topic, "k", "before"}, fine{topic, "k", "fine"};
  const OwnedMessage large{topic, "j", std::string(2 << 20, 'x')};
  const OwnedMessage lost{run.fixture.missing_topic(), "k", "lost"};
  REQUIRE(run.send(Who::one, first_lane, {{&before, 0}}).committed);
  auto end = run.send(Who::one, first_lane, {{&fine, 0}, {&large, 1}});
  CHECK(!end.committed);
  CAPTURE(end.error->text());
  REQUIRE(end.refused.size() == 1);
  CHECK(end.refused[0].index == 1);
  CHECK(end.refused[0].refusal == relay::Refusal::message);
  auto rows = run.open(Who::one, first_lane);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].id == before.view().id);
  end = run.send(Who::one, first_lane, {{&fine, 0}, {&lost, 0}});
  CHECK(!end.committed);
  CAPTURE(end.error->text());
  REQUIRE(end.refused.size() == 1);
  CHECK(end.refused[0].index == 1);
  CHECK(end.refused[0].refusal == relay::Refusal::topic);
  run.open(Who::one, first_lane);
  REQUIRE(run.send(Who::one, first_lane, {{&fine, 0}}).committed);
  CHECK(told(run.bodies(topic)) == "before fine");
}

TEST_CASE_TEMPLATE_DEFINE(
    "where the whole transaction is refused for one of many topics, that one is named and no other: the rest "
    "goes out",
    Fixture, transactor_contract_traced) {
  TransactorRun<Fixture> run;
  run.open(Who::one, first_lane);
  const OwnedMessage first{run.fixture.topic(1), "k", "first"};
  REQUIRE(run.send(Who::one, first_lane, {{&first, 0}}).committed);
  const auto closed = run.fixture.closed_topic();
  if (!closed) return;
  std::vector<std::unique_ptr<OwnedMessage>> owned;
  std::vector<std::pair<const OwnedMessage*, int>> all, rest;
  for (int n = 0; n < 12; ++n) {
    const bool refused = n == 3 || n == 9;
    const std::string topic = refused ? *closed : run.fixture.topic(1);
    all.emplace_back(owned.emplace_back(std::make_unique<OwnedMessage>(topic, "k", std::to_string(n))).get(),
                     0);
    if (!refused) rest.push_back(all.back());
  }
  const auto end = run.send(Who::one, first_lane, all);
  CHECK(!end.committed);
  CAPTURE(end.error->text());
  REQUIRE(end.refused.size() == 2);
  CHECK(end.refused[0].index == 3);
  CHECK(end.refused[1].index == 9);
  for (const auto& refused : end.refused) CHECK(refused.refusal == relay::Refusal::topic);
  run.open(Who::one, first_lane);
  REQUIRE(run.send(Who::one, first_lane, rest).committed);
  for (const auto& [message, partition] : rest)  // what was tried on the way is seen by nobody
    CHECK(run.bodies(std::string{message->view().topic}).size() == 1);
  run.open(Who::one, first_lane);
  const auto alone = run.send(Who::one, first_lane, {all[3]});
  CHECK(!alone.committed);
  CHECK(alone.refused.size() == 1);
}

TEST_CASE_TEMPLATE_DEFINE("a transaction that is given up is in Kafka if and only if the ledger names it",
                          Fixture, transactor_contract_abandon) {
  TransactorRun<Fixture> run;
  const std::string topic = run.fixture.topic(1);
  std::vector<std::unique_ptr<OwnedMessage>> owned;
  for (int turn = 0; turn < 4; ++turn) {
    run.open(Who::one, first_lane);
    std::vector<std::pair<const OwnedMessage*, int>> messages;
    messages.reserve(200);
    for (int n = 0; n < 200; ++n)
      messages.emplace_back(owned.emplace_back(std::make_unique<OwnedMessage>(topic, "k", "m")).get(), 0);
    std::optional<relay::TransactionEnd> end;
    const auto before = run.bodies(topic).size();
    run.start(Who::one, first_lane, messages, end);
    run.fixture.transactor(Who::one).abandon(first_lane);
    run.await(Who::one, end);
    const auto rows = run.open(Who::other, first_lane);
    const bool named = !rows.empty() && rows[0].id == messages[0].first->view().id;
    if (end->committed) CHECK(named);
    CHECK(run.bodies(topic).size() == before + (named ? 200 : 0));
  }
}

TEST_CASE_TEMPLATE_DEFINE("five thousand rows go in one transaction, each in its place", Fixture,
                          transactor_contract_many) {
  TransactorRun<Fixture> run;
  const std::string topic = run.fixture.topic(3);
  run.open(Who::one, first_lane);
  std::vector<std::unique_ptr<OwnedMessage>> owned;
  std::vector<std::pair<const OwnedMessage*, int>> messages;
  messages.reserve(5000);
  for (int n = 0; n < 5000; ++n)
    messages.emplace_back(
        owned.emplace_back(std::make_unique<OwnedMessage>(topic, "k", std::to_string(n))).get(), n % 3);
  const auto end = run.send(Who::one, first_lane, messages);
  REQUIRE(end.committed);
  const auto stored = run.fixture.committed(topic);
  REQUIRE(stored.size() == 5000);
  const auto rows = run.open(Who::one, first_lane);
  REQUIRE(rows.size() == 5000);
  for (const StoredRecord& r : stored) {
    const auto n = static_cast<std::size_t>(std::stoi(r.body.value()));
    REQUIRE(rows[n].id == owned[n]->view().id);
    REQUIRE(rows[n].offset.value == r.offset);
    REQUIRE(rows[n].partition.value == r.partition);
  }
}

TEST_CASE_TEMPLATE_DEFINE("after a stop no answer comes any more", Fixture, transactor_contract_stop) {
  TransactorRun<Fixture> run;
  const std::string topic = run.fixture.topic(1);
  run.open(Who::one, first_lane);
  const OwnedMessage a{topic, "k", "a"};
  std::optional<relay::TransactionEnd> end;
  run.start(Who::one, first_lane, {{&a, 0}}, end);
  run.fixture.transactor(Who::one).stop();
  run.fixture.run_a_while();
  CHECK(!end);
}

}  // namespace outbox::test

#define OUTBOX_TRANSACTOR_CONTRACT(Fixture)                        \
  TEST_CASE_TEMPLATE_INVOKE(transactor_contract_commit, Fixture);  \
  TEST_CASE_TEMPLATE_INVOKE(transactor_contract_newest, Fixture);  \
  TEST_CASE_TEMPLATE_INVOKE(transactor_contract_fence, Fixture);   \
  TEST_CASE_TEMPLATE_INVOKE(transactor_contract_refused, Fixture); \
  TEST_CASE_TEMPLATE_INVOKE(transactor_contract_traced, Fixture);  \
  TEST_CASE_TEMPLATE_INVOKE(transactor_contract_abandon, Fixture); \
  TEST_CASE_TEMPLATE_INVOKE(transactor_contract_many, Fixture);    \
  TEST_CASE_TEMPLATE_INVOKE(transactor_contract_stop, Fixture)
