// Handlers that take the fresh messages of a batch at once, and several workers.

#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "kafka_letters.hpp"
#include "letters.hpp"
#include "outbox/inbox.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/kafka.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

/// One statement for the whole span.
void insert_all(Transaction& tx, std::span<const Message> messages) {
  std::string ids, offsets, partitions;
  for (const auto& m : messages) {
    ids += (ids.empty() ? "" : ",") + to_string(m.msg_id());
    offsets += (offsets.empty() ? "" : ",") + std::to_string(m.offset());
    partitions += (partitions.empty() ? "" : ",") + std::to_string(m.partition());
  }
  static_cast<void>(
      tx.exec("INSERT INTO effect SELECT i, 't', p, o FROM unnest($1::text[], $2::int[], $3::bigint[]) AS u "
              "(i, p, o)",
              "{" + ids + "}", "{" + partitions + "}", "{" + offsets + "}"));
}

std::vector<Letter> numbered(int first, int count, int partitions = 1) {
  std::vector<Letter> out;
  for (int i = first; i < first + count; ++i) {
    out.push_back(letter(v7(i), std::to_string(i), i));
    out.back().partition = i % partitions;
    out.back().key = std::to_string(i);
  }
  return out;
}

}  // namespace

TEST_CASE("a span handler gets the fresh messages of a batch at once, in order, and nothing else") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  auto batch = numbered(0, 6);
  CHECK(inbox.process(batch[2].record(), record_effect).fate == Fate::applied);
  batch[4].headers.clear();
  std::vector<std::vector<std::int64_t>> calls;
  const SpanHandler handler = [&](Transaction& tx, std::span<const Message> messages) {
    calls.emplace_back();
    for (const auto& m : messages) calls.back().push_back(m.offset());
    insert_all(tx, messages);
  };
  using enum Fate;
  CHECK(fates(inbox.process(records(batch), handler)) ==
        std::vector{applied, applied, skipped, applied, dead, applied});
  REQUIRE(calls.size() == 1);
  CHECK(calls[0] == std::vector<std::int64_t>{0, 1, 3, 5});
  CHECK(db.effects() == 5);
  CHECK(fates(inbox.process(records(batch), handler)) ==
        std::vector{skipped, skipped, skipped, skipped, dead, skipped});
  CHECK(calls.size() == 1);
}

TEST_CASE("where a span handler throws, halves are tried, down to the one message that it throws for") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  const auto batch = numbered(0, 40);
  int calls = 0;
  const SpanHandler handler = [&](Transaction& tx, std::span<const Message> messages) {
    ++calls;
    insert_all(tx, messages);
    for (const auto& m : messages)
      if (m.offset() == 29) throw Reject("no such account");
  };
  const auto outcomes = inbox.process(records(batch), handler);
  CHECK(std::ranges::count(fates(outcomes), Fate::applied) == 39);
  CHECK(outcomes[29].fate == Fate::dead);
  CHECK(outcomes[29].reason == "no such account");
  CHECK(calls <= 14);
  CHECK(db.effects() == 39);
}

TEST_CASE("Retry and a failure in a span hold up their partition only, behind the message alone") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  const auto batch = numbered(0, 8, 2);
  const SpanHandler handler = [&](Transaction& tx, std::span<const Message> messages) {
    insert_all(tx, messages);
    for (const auto& m : messages)
      if (m.offset() == 3) throw Retry("busy", Millis{7000});
  };
  const auto outcomes = inbox.process(records(batch), handler);
  using enum Fate;
  CHECK(fates(outcomes) ==
        std::vector{applied, applied, applied, failed, applied, waiting, applied, waiting});
  CHECK(outcomes[3].retry_wait == Millis{7000});
}

TEST_CASE("a dead message is retried with a span of one") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  auto one = letter(v7(1));
  one.attempt = 1000;
  const SpanHandler broken = [](Transaction&, std::span<const Message>) { throw std::runtime_error("no"); };
  CHECK(inbox.process(std::vector{one.record()}, broken).front().fate == Fate::dead);
  must(db.session.exec("SELECT inbox_dead_retry(id) FROM dead_msgs"));
  CHECK(fates(inbox.retry_dead(SpanHandler(insert_all))) == std::vector{Fate::applied});
  CHECK(db.effects() == 1);
}

TEST_CASE("four workers: each partition in order on one thread at a time, several at once, one effect each") {
  KafkaCluster& kafka = KafkaCluster::shared();
  constexpr int partitions = 8, total = 1600;
  const auto topic = kafka.new_topic("workers", partitions);
  ServiceDatabase db;
  send(kafka.bootstrap(), topic, numbered(0, total, partitions));
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::set<std::int32_t> at_work;
  bool collided = false;
  ConsumerOptions options{.name = topic,
                          .postgres = db.database.uri(),
                          .kafka = {{"bootstrap.servers", kafka.bootstrap()}},
                          .topics = {topic},
                          .workers = 4,
                          .batch_rows_max = 20,
                          .horizon_check = horizon_check(kafka),
                          .log = [](std::string_view) {}};
  RunningConsumer consumer(options, [&](Transaction& tx, const Message& m) {
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      if (!at_work.insert(m.partition()).second) collided = true;
    }
    record_effect(tx, m);
    const std::lock_guard lock(mutex);
    at_work.erase(m.partition());
  });
  eventually(
      "all are applied", [&] { return db.effects() >= total; }, Millis{60'000});
  consumer.stop();
  CHECK(db.effects() == total);
  CHECK(threads.size() == 4);
  CHECK_FALSE(collided);
  CHECK(db.number("SELECT count(*) FROM (SELECT off <= lag(off) OVER (PARTITION BY part ORDER BY seq) AS back"
                  " FROM effect) o WHERE back") == 0);
}

TEST_CASE(
    "order by key: one partition keeps four workers at work, each key in order, and a failing key stops no "
    "other") {
  KafkaCluster& kafka = KafkaCluster::shared();
  constexpr int keys = 16, total = 800;
  const auto topic = kafka.new_topic("keys", 1);
  ServiceDatabase db;
  auto letters = numbered(0, total, 1);
  for (int i = 0; i < total; ++i) letters[static_cast<std::size_t>(i)].key = "a" + std::to_string(i % keys);
  send(kafka.bootstrap(), topic, letters);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::set<std::string> at_work;
  std::atomic<bool> collided = false, broken = true;
  ConsumerOptions options{.name = topic,
                          .postgres = db.database.uri(),
                          .kafka = {{"bootstrap.servers", kafka.bootstrap()}},
                          .topics = {topic},
                          .workers = 4,
                          .order = Order::key,
                          .batch_rows_max = 20,
                          .horizon_check = horizon_check(kafka),
                          .backoff_initial = Millis{20},
                          .backoff_max = Millis{200},
                          .log = [](std::string_view) {}};
  RunningConsumer consumer(options, [&](Transaction& tx, const Message& m) {
    const std::string key(*m.key());
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      if (!at_work.insert(key).second) collided = true;
    }
    record_effect(tx, m);
    {
      const std::lock_guard lock(mutex);
      at_work.erase(key);
    }
    if (broken && m.offset() == 5) throw Retry("not yet");
  });
  const auto by_others = [&] {
    return db.number("SELECT count(DISTINCT off % 16) FROM effect WHERE off > 5") >= 8;
  };
  eventually("other keys pass it", by_others, Millis{40'000});
  CHECK(db.number("SELECT count(*) FROM effect WHERE off % 16 = 5") == 0);
  eventually("the offset stands before it",
             [&] { return committed(kafka.bootstrap(), topic, topic, 0) == 5; });
  broken = false;
  eventually(
      "all are applied", [&] { return db.effects() >= total; }, Millis{60'000});
  eventually("the offset passed", [&] { return committed(kafka.bootstrap(), topic, topic, 0) == total; });
  consumer.stop();
  CHECK(db.effects() == total);
  CHECK(threads.size() == 4);
  CHECK_FALSE(collided);
  CHECK(db.number(
            "SELECT count(*) FROM (SELECT off <= lag(off) OVER (PARTITION BY off % 16 ORDER BY seq) AS back"
            " FROM effect) o WHERE back") == 0);
}
