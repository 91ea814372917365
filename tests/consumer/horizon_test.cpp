// What is forgotten, and that nothing forgotten ever looks fresh.

#include "consumer/core/horizon.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "kafka_letters.hpp"
#include "letters.hpp"
#include "outbox/inbox.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/kafka.hpp"

using namespace outbox;
using namespace outbox::test;
using std::chrono::hours;

namespace {

constexpr int day = 24;

/// A uuid of version 7 that was made `hours_ago`, and ends in `n`.
std::string aged(int hours_ago, int n) {
  return v7(n, hours{hours_ago});
}

/// A database whose daily partitions reach back to `days` ago.
struct OldDatabase : ServiceDatabase {
  explicit OldDatabase(int days) {
    must(
        session.exec("SELECT outbox_make_partition('processed_msgs', 'processed_msgs_default', "
                     "(now() AT TIME ZONE 'UTC')::date - n, 'fillfactor = 100') FROM generate_series(2, " +
                     std::to_string(days) + ") n"));
  }
  InboxOptions with_horizon(hours horizon, const std::string& name = "ledger") const {
    auto options = inbox(name);
    options.horizon = horizon;
    return options;
  }
  std::int64_t partitions() {
    return number("SELECT count(*) FROM pg_inherits WHERE inhparent = 'processed_msgs'::regclass");
  }
};

TopicRetention topic(hours retention, hours segment) {
  return {.topic = "t", .retention = retention, .segment = segment};
}

}  // namespace

TEST_CASE(
    "the horizon must exceed retention, segment and publishing delay together, and the figures are said") {
  CHECK_FALSE(horizon_fault(topic(hours{10}, hours{5}), hours{21}, hours{5}).has_value());
  const auto fault = horizon_fault(topic(hours{10}, hours{5}), hours{20}, hours{5});
  REQUIRE(fault.has_value());
  for (const auto* figure : {"topic t", "10 h + 5 h", "publish_delay_max is 5 h", "is 20 h"})
    CHECK(fault->find(figure) != std::string::npos);
  CHECK(horizon_fault(topic(hours{1}, hours{1}), hours{48}, hours{48}).has_value());
}

TEST_CASE("a topic without a limit of time fits no horizon but forever") {
  const auto infinite = TopicRetention{.topic = "t", .retention = Millis{-1}, .segment = hours{1}};
  auto compacted = topic(hours{1}, hours{1});
  compacted.compacted = true;
  const TopicRetention longest{.topic = "t", .retention = Millis::max(), .segment = Millis::max()};
  for (const auto& one : {infinite, compacted, longest}) {
    CHECK(horizon_fault(one, hours{876'000}, hours{0}).has_value());
    CHECK_FALSE(horizon_fault(one, forever, hours{0}).has_value());
  }
}

TEST_CASE(
    "upkeep drops the days beyond the horizon, and what comes again from them is expired, never applied") {
  OldDatabase db(10);
  Inbox inbox(db.with_horizon(hours{5 * day}));
  const auto old = letter(aged(8 * day, 1)), young = letter(aged(3 * day, 2), "{}", 1);
  CHECK(inbox.process(old.record(), record_effect).fate == Fate::applied);
  CHECK(inbox.process(young.record(), record_effect).fate == Fate::applied);
  const auto before = db.partitions();
  const auto upkeep = inbox.maintain();
  CHECK(upkeep.dropped >= 3);
  CHECK(db.partitions() == before - upkeep.dropped);

  const auto again = inbox.process(old.record(), record_effect);
  CHECK(again.verdict == Verdict::expired);
  CHECK(again.fate == Fate::dead);
  CHECK(inbox.process(young.record(), record_effect).verdict == Verdict::duplicate);
  CHECK(db.effects() == 2);
  CHECK(db.number("SELECT count(*) FROM dead_msgs WHERE verdict = 'expired' AND body = '{}'") == 1);
  CHECK(db.text("SELECT state FROM processed_msgs WHERE msg_id = '" + *old.headers[0].second + "'") ==
        "dead");
  auto copy = old;
  copy.offset = 77;
  CHECK(inbox.process(copy.record(), record_effect).verdict == Verdict::duplicate);
  CHECK(db.dead() == 1);
}

TEST_CASE("of a batch only what is below the mark expires, and two copies of it are one dead letter") {
  OldDatabase db(10);
  Inbox inbox(db.with_horizon(hours{5 * day}));
  CHECK(inbox.process(letter(aged(8 * day, 1)).record(), record_effect).fate == Fate::applied);
  CHECK(inbox.maintain().dropped > 0);
  const auto forgotten = aged(9 * day, 3);
  const std::vector batch = {letter(forgotten, "{}", 1), letter(aged(1, 4), "{}", 2),
                             letter(forgotten, "{}", 3)};
  const auto outcomes = inbox.process(records(batch), record_effect);
  CHECK(fates(outcomes) == std::vector{Fate::dead, Fate::applied, Fate::skipped});
  CHECK(outcomes[0].verdict == Verdict::expired);
  CHECK(db.effects() == 2);
}

TEST_CASE("an id without a time is remembered, whatever is dropped") {
  OldDatabase db(10);
  Inbox inbox(db.with_horizon(hours{5 * day}));
  const auto timeless = letter("f81d4fae-7dec-41d0-a765-00a0c91e6bf6");
  CHECK(inbox.process(timeless.record(), record_effect).fate == Fate::applied);
  CHECK(inbox.process(letter(aged(8 * day, 1)).record(), record_effect).fate == Fate::applied);
  CHECK(inbox.maintain().dropped > 0);
  CHECK(inbox.process(timeless.record(), record_effect).verdict == Verdict::duplicate);
}

TEST_CASE("a day is kept while one consumer with rows in it must remember it, or never registered") {
  OldDatabase db(10);
  Inbox brief(db.with_horizon(hours{3 * day})), thorough(db.with_horizon(hours{30 * day}, "audit"));
  const auto old = letter(aged(8 * day, 1));
  CHECK(brief.process(old.record(), record_effect).fate == Fate::applied);
  CHECK(thorough.process(old.record(), record_effect).fate == Fate::applied);
  static_cast<void>(brief.maintain());
  CHECK(brief.process(old.record(), record_effect).verdict == Verdict::duplicate);
  CHECK(thorough.process(old.record(), record_effect).verdict == Verdict::duplicate);
  must(db.session.exec("DELETE FROM inbox_consumer WHERE consumer = 'audit'"));
  static_cast<void>(brief.maintain());
  CHECK(brief.process(old.record(), record_effect).verdict == Verdict::duplicate);
  must(db.session.exec("SELECT inbox_register('audit', interval '3 days')"));
  CHECK(brief.maintain().dropped > 0);
  CHECK(brief.process(old.record(), record_effect).verdict == Verdict::expired);
}

TEST_CASE("a consumer that joins later has forgotten nothing: old messages are fresh to it") {
  OldDatabase db(10);
  Inbox first(db.with_horizon(hours{5 * day}));
  const auto old = letter(aged(8 * day, 1));
  CHECK(first.process(old.record(), record_effect).fate == Fate::applied);
  CHECK(first.maintain().dropped > 0);
  Inbox second(db.with_horizon(hours{5 * day}, "newcomer"));
  CHECK(second.process(old.record(), record_effect).fate == Fate::applied);
  CHECK(second.process(old.record(), record_effect).verdict == Verdict::duplicate);
}

TEST_CASE("what no daily partition took is forgotten by the same rule") {
  ServiceDatabase db;  // partitions from yesterday on: older ids go to the DEFAULT partition
  auto options = db.inbox();
  options.horizon = hours{5 * day};
  Inbox inbox(options);
  const auto old = letter(aged(8 * day, 1)), young = letter(aged(3 * day, 2), "{}", 1);
  CHECK(inbox.process(old.record(), record_effect).fate == Fate::applied);
  CHECK(inbox.process(young.record(), record_effect).fate == Fate::applied);
  CHECK(inbox.maintain().purged == 1);
  CHECK(inbox.process(old.record(), record_effect).verdict == Verdict::expired);
  CHECK(inbox.process(young.record(), record_effect).verdict == Verdict::duplicate);
  CHECK(db.effects() == 2);
}

TEST_CASE("a dead letter outlives its day") {
  OldDatabase db(10);
  Inbox inbox(db.with_horizon(hours{5 * day}));
  const auto rejected = letter(aged(8 * day, 1));
  CHECK(inbox.process(rejected.record(), [](Transaction&, const Message&) { throw Reject("no"); }).fate ==
        Fate::dead);
  CHECK(inbox.maintain().dropped > 0);
  CHECK(db.number("SELECT count(*) FROM processed_msgs WHERE state = 'dead'") == 1);
  CHECK(inbox.process(rejected.record(), record_effect).verdict == Verdict::duplicate);
}

TEST_CASE("upkeep does not wait forever behind a transaction at work, and does its work afterwards") {
  OldDatabase db(10);
  Inbox inbox(db.with_horizon(hours{5 * day}));
  CHECK(inbox.process(letter(aged(8 * day, 1)).record(), record_effect).fate == Fate::applied);
  auto other = db.database.session();
  must(other.exec("BEGIN"));
  must(other.exec("SELECT count(*) FROM processed_msgs"));
  const auto held_up = inbox.maintain();
  CHECK(held_up.dropped == 0);
  CHECK(held_up.waiting > 0);
  must(other.exec("ROLLBACK"));
  CHECK(inbox.maintain().dropped > 0);
}

TEST_CASE("a claim that raced the drop of its day sees the mark: it expires") {
  OldDatabase db(10);
  Inbox inbox(db.with_horizon(hours{5 * day}));
  const auto old = letter(aged(8 * day, 1));
  CHECK(inbox.process(old.record(), record_effect).fate == Fate::applied);
  auto dropper = db.database.session();
  must(dropper.exec("BEGIN"));
  must(dropper.exec("SELECT inbox_maintain()"));
  Outcome raced;
  std::thread claimer([&] {
    Inbox second(db.with_horizon(hours{5 * day}));
    raced = second.process(old.record(), record_effect);
  });
  const auto waits =
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
      " AND application_name LIKE 'outbox:%' AND wait_event_type = 'Lock'";
  eventually("the claim waits for the drop", [&] { return db.number(waits) > 0; });
  must(dropper.exec("COMMIT"));
  claimer.join();
  CHECK(raced.verdict == Verdict::expired);
  CHECK(db.effects() == 1);
}

TEST_CASE("two upkeeps at once: one works, the other is told so") {
  OldDatabase db(10);
  Inbox inbox(db.with_horizon(hours{5 * day}));
  inbox.check();
  auto first = db.database.session();
  must(first.exec("BEGIN"));
  must(first.exec("SELECT inbox_maintain()"));
  CHECK(inbox.maintain().busy);
  must(first.exec("COMMIT"));
  CHECK_FALSE(inbox.maintain().busy);
}

TEST_CASE(
    "a horizon that a topic's retention exceeds is refused with the figures, unless said to be unchecked") {
  KafkaCluster& kafka = KafkaCluster::shared();
  if (!kafka.real()) return;
  const auto week = std::to_string(7L * day * 3600 * 1000);
  const auto name = kafka.new_topic("horizon", 1, {{"retention.ms", week}, {"segment.ms", week}});
  ServiceDatabase db;
  ConsumerOptions options{.name = name,
                          .postgres = db.database.uri(),
                          .kafka = {{"bootstrap.servers", kafka.bootstrap()}},
                          .topics = {name},
                          .horizon = hours{14 * day},
                          .publish_delay_max = hours{1},
                          .log = [](std::string_view) {}};
  Consumer refused(options);
  CHECK_THROWS_WITH_AS(refused.run(record_effect), doctest::Contains("168 h + 168 h"), ConsumerError);

  std::atomic<bool> said = false;
  options.log = [&](std::string_view line) {
    if (line == "horizon: unchecked") said = true;
  };
  options.horizon_check = HorizonCheck::unchecked;
  send(kafka.bootstrap(), name, {letter(v7(1))});
  {
    RunningConsumer running(options, record_effect);
    eventually("the message is applied", [&] { return db.effects() == 1; });
  }
  CHECK(said);

  options.horizon_check = HorizonCheck::refuse;
  options.horizon = hours{14 * day + 2};
  RunningConsumer accepted(options, record_effect);
  send(kafka.bootstrap(), name, {letter(v7(2))});
  eventually("the next is applied", [&] { return db.effects() == 2; });
}

TEST_CASE("a topic that is made later is judged when it is there") {
  KafkaCluster& kafka = KafkaCluster::shared();
  if (!kafka.real()) return;
  const auto there = kafka.new_topic("horizon", 1, {{"retention.ms", "3600000"}, {"segment.ms", "3600000"}});
  const auto later = KafkaCluster::unique_topic("later");
  ServiceDatabase db;
  std::atomic<bool> said = false;
  RunningConsumer running({.name = there,
                           .postgres = db.database.uri(),
                           .kafka = {{"bootstrap.servers", kafka.bootstrap()}},
                           .topics = {there, later},
                           .log =
                               [&](std::string_view line) {
                                 if (line.starts_with("topic_missing topic=" + later)) said = true;
                               }},
                          record_effect);
  send(kafka.bootstrap(), there, {letter(v7(1))});
  eventually(
      "the other topic is consumed", [&] { return db.effects() == 1; }, Millis{40'000});
  CHECK(said);
  CHECK_FALSE(running.ended());
  kafka.create_topic(later, 1, {{"retention.ms", "-1"}});
  eventually(
      "the consumer ends", [&] { return running.ended(); }, Millis{30'000});
  CHECK(running.error().find("topic " + later + " has no limit of time") != std::string::npos);
}

TEST_CASE("a cluster that does not tell how long it keeps a topic is refused, unless said to be unchecked") {
  KafkaCluster mute({.kind = KafkaKind::mock});  // answers metadata, and never this
  const auto name = mute.new_topic("mute");
  ServiceDatabase db;
  ConsumerOptions options{.name = name,
                          .postgres = db.database.uri(),
                          .kafka = {{"bootstrap.servers", mute.bootstrap()}},
                          .topics = {name},
                          .log = [](std::string_view) {}};
  const auto start = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH_AS(Consumer(options).run(record_effect), doctest::Contains("horizon_check = unchecked"),
                       ConsumerError);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds{30});
  options.horizon_check = HorizonCheck::unchecked;
  send(mute.bootstrap(), name, {letter(v7(1))});
  RunningConsumer running(options, record_effect);
  eventually(
      "it is applied", [&] { return db.effects() == 1; }, Millis{40'000});
}

TEST_CASE("a running consumer makes partitions and drops old ones by itself") {
  KafkaCluster& kafka = KafkaCluster::shared();
  const auto name = kafka.new_topic("upkeep", 1);
  OldDatabase db(40);
  const auto before = db.partitions();
  RunningConsumer running({.name = name,
                           .postgres = db.database.uri(),
                           .kafka = {{"bootstrap.servers", kafka.bootstrap()}},
                           .topics = {name},
                           .horizon_check = horizon_check(kafka),
                           .log = [](std::string_view) {}},
                          record_effect);
  eventually("old days are gone", [&] { return db.partitions() < before; });
}
