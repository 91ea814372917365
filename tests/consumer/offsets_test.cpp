// Offsets in the database: moved with the effects, by compare-and-set.

#include <doctest/doctest.h>

#include <stdexcept>
#include <thread>

#include "ledger.hpp"
#include "outbox/inbox.hpp"
#include "tests/support/eventually.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

Letter of(const PartitionClaim& claim, int n, std::int64_t offset) {
  auto one = letter(v7(n), std::to_string(n), offset);
  one.epoch = claim.epoch;
  return one;
}

struct FencedCount final : Metrics {
  void record(Metric metric, std::string_view label, double value) noexcept override {
    if (metric == Metric::retries && label == "fenced") fenced += static_cast<int>(value);
  }
  void forget(Metric, std::string_view) noexcept override {}
  std::atomic<int> fenced = 0;
};

struct OffsetDatabase : ServiceDatabase {
  std::string stands() {
    return text("SELECT epoch || ':' || coalesce(next::text, 'none') FROM inbox_offset");
  }
};

}  // namespace

TEST_CASE("the offset moves with what is settled, in its transaction, and the next owner goes on there") {
  OffsetDatabase db;
  Inbox inbox(db.inbox());
  const auto first = inbox.claim_partition("transfers", 0);
  CHECK(first.epoch == 1);
  CHECK_FALSE(first.next.has_value());
  const std::vector batch{of(first, 1, 10), of(first, 2, 11), of(first, 3, 12)};
  const Handler fails_at_11 = [](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    if (m.offset() == 11) throw std::runtime_error("no");
  };
  CHECK(fates(inbox.process(records(batch), fails_at_11)) ==
        std::vector{Fate::applied, Fate::failed, Fate::waiting});
  CHECK(db.stands() == "1:11");
  auto last = of(first, 2, 11);
  last.attempt = 1000;
  CHECK(inbox.process(last.record(), fails_at_11).fate == Fate::dead);
  CHECK(db.stands() == "1:12");
  const auto second = inbox.claim_partition("transfers", 0);
  CHECK(second.epoch == 2);
  CHECK(second.next == 12);
}

TEST_CASE(
    "a zombie whose handler wakes after another has claimed its partition is refused, whatever it did") {
  OffsetDatabase db;
  Inbox frozen(db.inbox()), heir(db.inbox());
  const auto before = frozen.claim_partition("transfers", 0);
  std::atomic<bool> inside = false, awake = false;
  std::vector<Outcome> late;
  std::thread zombie([&] {
    const std::vector batch{of(before, 1, 0), of(before, 2, 1)};
    late = frozen.process(records(batch), [&](Transaction& tx, const Message& m) {
      record_effect(tx, m);
      inside = true;
      eventually(
          "it wakes", [&] { return awake.load(); }, Millis{40'000});
    });
  });
  eventually("it is at work", [&] { return inside.load(); });
  const auto claim = heir.claim_partition("transfers", 0);  // does not wait for the frozen transaction
  CHECK(claim.epoch == 2);
  CHECK_FALSE(claim.next.has_value());
  awake = true;
  zombie.join();
  for (const auto& outcome : late) {
    CHECK(outcome.fate == Fate::waiting);
    CHECK(outcome.fenced);
  }
  CHECK(db.effects() == 0);
  CHECK(db.number("SELECT count(*) FROM processed_msgs") == 0);
  CHECK(db.stands() == "2:none");
  CHECK(heir.process(of(claim, 1, 0).record(), record_effect).fate == Fate::applied);
  CHECK(frozen.process(of(before, 2, 1).record(), record_effect).fenced);
  CHECK(db.stands() == "2:1");
  CHECK(db.effects() == 1);
}

TEST_CASE("a dead letter moves the offset, too, and a zombie buries nothing") {
  OffsetDatabase db;
  Inbox inbox(db.inbox());
  const auto before = inbox.claim_partition("transfers", 0);
  const Handler rejects = [](Transaction&, const Message&) { throw Reject("no such account"); };
  CHECK(inbox.process(of(before, 1, 0).record(), rejects).fate == Fate::dead);
  CHECK(db.stands() == "1:1");
  static_cast<void>(inbox.claim_partition("transfers", 0));
  CHECK(inbox.process(of(before, 2, 1).record(), rejects).fenced);
  CHECK(db.dead() == 1);
}

TEST_CASE(
    "offsets in the database: killed before Kafka was told, nothing comes again, and a group without offsets "
    "starts there") {
  Ledger ledger(2);
  ledger.send(0, 200);
  const std::vector<std::string> in_database{"--offsets", "database"};
  {
    Process service(OUTBOX_LEDGER_CONSUMER, ledger.options("3600000", in_database));
    eventually(
        "all entries", [&] { return ledger.entries() == 200; }, Millis{40'000});
    service.kill(SIGKILL);
    static_cast<void>(service.wait());
  }
  CHECK(committed(ledger.kafka, ledger.topic, ledger.topic, 0) == -1);
  ledger.send(200, 20);
  // Another group: Kafka knows nothing of it.
  Process again(OUTBOX_LEDGER_CONSUMER, ledger.options("20", {"--offsets", "database", "--kafka-property",
                                                              "group.id=new-" + ledger.topic}));
  eventually(
      "the new ones", [&] { return ledger.entries() == 220; }, Millis{40'000});
  again.kill(SIGTERM);
  CHECK(again.wait(Millis{30'000}).code == 0);
  CHECK(again.output().find("fresh=20 duplicate=0") == 0);
  CHECK(ledger.money_is_right(220));
}

TEST_CASE(
    "offsets in the database: a frozen process that wakes is refused, joins again, and the money is right") {
  Ledger ledger(2);
  ledger.send(0, 600);
  auto options = ledger.options(
      "20", {"--offsets", "database", "--batch-rows", "5", "--postgres",
             ledger.db.database.uri() + "?options=-cidle_in_transaction_session_timeout%3D2s"});
  auto freezes = options;
  // Where it holds the most: everything of a batch is written, the offset's row is locked.
  freezes.env["OUTBOX_CRASH_AT"] = "consumer_before_commit:8:sleep=1000";
  Process frozen(OUTBOX_LEDGER_CONSUMER, freezes);
  eventually(
      "it is about to commit",
      [&] {
        return ledger.entries() >= 20 &&
               ledger.db.number(
                   "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND"
                   " state = 'idle in transaction' AND query LIKE '%inbox_offset_move%'"
                   " AND now() - state_change > interval '100 ms'") == 1;
      },
      Millis{40'000});
  frozen.kill(SIGSTOP);
  Process heir(OUTBOX_LEDGER_CONSUMER, options);
  INFO("the frozen one: ", frozen.errors(), "the heir: ", heir.errors());
  eventually(
      "the other has its partitions",
      [&] { return heir.errors().find("partition_assigned") != std::string::npos; }, Millis{60'000});
  frozen.kill(SIGCONT);
  eventually(
      "all entries", [&] { return ledger.entries() >= 600; }, Millis{90'000});
  eventually("it was refused", [&] { return frozen.errors().find("partition_fenced") != std::string::npos; });
  for (auto* process : {&frozen, &heir}) {
    process->kill(SIGTERM);
    CHECK(process->wait(Millis{30'000}).code == 0);
  }
  CHECK(ledger.money_is_right(600));
}

TEST_CASE(
    "who waits for a partition whose owner froze in its commit says so, goes on when it may, and can be "
    "stopped") {
  KafkaCluster& kafka = KafkaCluster::shared();
  const auto topic = kafka.new_topic("waits", 1);
  OffsetDatabase db;
  must(db.session.exec("SELECT inbox_offset_claim('" + topic + "', '" + topic + "', 0)"));
  const auto freeze = [&] {
    must(db.session.exec("BEGIN"));
    must(db.session.exec("UPDATE inbox_offset SET changed_at = now()"));
  };
  std::atomic<int> waits = 0;
  const ConsumerOptions options{.name = topic,
                                .postgres = db.database.uri(),
                                .kafka = {{"bootstrap.servers", kafka.bootstrap()}},
                                .topics = {topic},
                                .offsets = Offsets::database,
                                .horizon_check = horizon_check(kafka),
                                .log = [&](std::string_view line) {
                                  if (line.starts_with("claim_waits partition=" + topic + "-0 ")) ++waits;
                                }};
  freeze();
  {
    RunningConsumer consumer(options, record_effect);
    eventually(
        "it says so", [&] { return waits == 1; }, Millis{40'000});
    consumer.stop();
    eventually(
        "it ends", [&] { return consumer.ended(); }, Millis{20'000});
  }
  RunningConsumer consumer(options, record_effect);
  eventually(
      "it says so again", [&] { return waits == 2; }, Millis{40'000});
  must(db.session.exec("ROLLBACK"));
  send(kafka.bootstrap(), topic, {letter(v7(1))});
  eventually(
      "it goes on", [&] { return db.effects() == 1; }, Millis{40'000});
}

TEST_CASE(
    "an owner that is fenced by mistake joins the group again and goes on, and every effect is there once") {
  KafkaCluster& kafka = KafkaCluster::shared();
  const auto topic = kafka.new_topic("fenced", 1);
  OffsetDatabase db;
  std::atomic<bool> said = false;
  const auto metrics = std::make_shared<FencedCount>();
  RunningConsumer consumer({.name = topic,
                            .postgres = db.database.uri(),
                            .kafka = {{"bootstrap.servers", kafka.bootstrap()}},
                            .topics = {topic},
                            .offsets = Offsets::database,
                            .horizon_check = horizon_check(kafka),
                            .metrics = metrics,
                            .backoff_initial = Millis{20},

                            .log =
                                [&](std::string_view line) {
                                  if (line.starts_with("partition_fenced")) said = true;
                                }},
                           record_effect);
  send(kafka.bootstrap(), topic, {letter(v7(1)), letter(v7(2))});
  eventually(
      "they are applied", [&] { return db.effects() == 2; }, Millis{40'000});
  must(db.session.exec("SELECT inbox_offset_claim(consumer, topic, partition) FROM inbox_offset"));
  send(kafka.bootstrap(), topic, {letter(v7(3)), letter(v7(4))});
  eventually(
      "the others, too", [&] { return db.effects() == 4; }, Millis{40'000});
  CHECK(said);
  CHECK(metrics->fenced >= 1);
  CHECK_FALSE(consumer.ended());
  eventually("the offset stands", [&] { return db.text("SELECT next::text FROM inbox_offset") == "4"; });
}
