// The whole consumer on a real Kafka and a real PostgreSQL.

#include "outbox/consumer.hpp"

#include <doctest/doctest.h>

#include <mutex>
#include <stdexcept>

#include "kafka_letters.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/kafka.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

struct Service {
  explicit Service(int partitions = 1)
      : kafka(KafkaCluster::shared()), topic(kafka.new_topic("transfers", partitions)) {}

  [[nodiscard]] ConsumerOptions options() const {
    return {.name = topic,  // as unlikely to meet another run's group
            .postgres = db.database.uri(),
            .kafka = {{"bootstrap.servers", kafka.bootstrap()}},
            .topics = {topic},
            .horizon_check = horizon_check(kafka),
            .backoff_initial = Millis{20},
            .backoff_max = Millis{200},
            .log = [](std::string_view) {}};
  }
  void send(const std::vector<Letter>& letters) const { test::send(kafka.bootstrap(), topic, letters); }
  [[nodiscard]] std::int64_t committed(int partition = 0) const {
    return test::committed(kafka.bootstrap(), topic, topic, partition);
  }
  void forget_group() const { test::forget_group(kafka.bootstrap(), topic); }
  void await_effects(std::int64_t count) {
    eventually(
        std::to_string(count) + " effects", [&] { return db.effects() >= count; }, Millis{40'000});
    CHECK(db.effects() == count);
  }

  KafkaCluster& kafka;
  std::string topic;
  ServiceDatabase db;
};

std::vector<Letter> letters(int first, int count, int partitions = 1) {
  std::vector<Letter> out;
  for (int i = first; i < first + count; ++i) {
    out.push_back(letter(v7(i), std::to_string(i)));
    out.back().partition = i % partitions;
  }
  return out;
}

}  // namespace

TEST_CASE("what was sent takes effect once, offsets follow, and a restart goes on where it stopped") {
  Service service(3);
  service.send(letters(0, 300, 3));
  {
    RunningConsumer consumer(service.options(), record_effect);
    service.await_effects(300);
    consumer.stop();
    CHECK(consumer.error().empty());
    CHECK(consumer.counters().fresh == 300);
  }
  for (int p = 0; p < 3; ++p) CHECK(service.committed(p) == 100);
  service.send(letters(300, 30, 3));
  RunningConsumer again(service.options(), record_effect);
  service.await_effects(330);
  CHECK(again.counters().duplicate == 0);
  CHECK(service.db.number(
            "SELECT count(*) FROM (SELECT off <= lag(off) OVER (PARTITION BY part ORDER BY seq) AS back"
            " FROM effect) o WHERE back") == 0);
}

TEST_CASE("tombstones, empty bodies, null keys and doubled headers arrive as they were sent") {
  Service service;
  auto tombstone = letter(v7(1), std::nullopt), empty = letter(v7(2), ""), keyless = letter(v7(3), "x");
  keyless.key = std::nullopt;
  keyless.headers.insert(keyless.headers.end(), {{"h", "1"}, {"h", std::nullopt}, {"h", "3"}});
  service.send({tombstone, empty, keyless});
  std::mutex mutex;
  std::vector<std::string> seen;
  RunningConsumer consumer(service.options(), [&](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    const std::lock_guard lock(mutex);
    seen.push_back(std::string(m.key().value_or("null")) + "|" + std::string(m.body().value_or("null")) +
                   "|" + std::to_string(m.headers().size()) + std::string(m.header("h").value_or("-")));
  });
  service.await_effects(3);
  consumer.stop();
  CHECK(seen == std::vector<std::string>{"k|null|1-", "k||1-", "null|x|43"});
}

TEST_CASE("malformed messages and conflicts go to dead_msgs, the offset passes them, and nothing loops") {
  Service service;
  service.send(
      {letter(v7(1), "a"), {.headers = {}}, letter(v7(1), "b"), letter("no uuid"), letter(v7(2), "c")});
  RunningConsumer consumer(service.options(), record_effect);
  service.await_effects(2);
  eventually("the offset passed", [&] { return service.committed() == 5; });
  consumer.stop();
  CHECK(service.db.dead() == 3);
  CHECK(consumer.counters().dead == 3);
  CHECK(consumer.counters().conflict == 1);
}

TEST_CASE("a message that fails keeps its place: its partition waits, the other goes on, the order holds") {
  Service service(2);
  std::atomic<bool> broken = true;
  service.send(letters(0, 40, 2));
  RunningConsumer consumer(service.options(), [&](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    if (broken && m.partition() == 0 && m.offset() == 5) throw Retry("not yet");
  });
  service.await_effects(25);
  eventually("the other partition's offset passed", [&] { return service.committed(1) == 20; });
  eventually("its own stands at the failing one", [&] { return service.committed(0) == 5; });
  broken = false;
  service.await_effects(40);
  consumer.stop();
  CHECK(service.committed(0) == 20);
  CHECK(service.db.text("SELECT string_agg(off::text, ',' ORDER BY seq) FROM effect WHERE part = 0") ==
        "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19");
}

TEST_CASE("a handler that always fails ends in dead_msgs after attempts_max, and the rest goes on") {
  Service service;
  auto options = service.options();
  options.attempts_max = 3;
  options.after_attempts = AfterAttempts::dead_letter;
  service.send(letters(0, 10));
  RunningConsumer consumer(options, [&](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    if (m.offset() == 4) throw std::runtime_error("bug");
  });
  service.await_effects(9);
  eventually("the offset passed", [&] { return service.committed() == 10; });
  CHECK(service.db.number("SELECT attempts FROM dead_msgs WHERE verdict = 'failed'") == 3);
}

TEST_CASE("a failed message parks its key while others go on, and a retry empties the queue in order") {
  Service service;
  auto options = service.options();
  options.attempts_max = 2;
  options.dead_retry_interval = Millis{50};
  auto all = letters(0, 20);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].key = i % 2 == 0 ? "even" : "odd";
  service.send(all);
  std::atomic<bool> broken = true;
  RunningConsumer consumer(options, [&](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    if (broken && m.offset() == 4) throw std::runtime_error("bug");
  });
  service.await_effects(12);
  eventually("the offset passed", [&] { return service.committed() == 20; });
  CHECK(consumer.counters().parked == 7);
  broken = false;
  must(service.db.session.exec("SELECT inbox_dead_retry(min(id)) FROM dead_msgs"));
  service.await_effects(20);
  eventually("it is counted", [&] { return consumer.counters().revived == 8; });
  CHECK(service.db.text("SELECT string_agg(off::text, ',' ORDER BY seq) FROM effect WHERE off % 2 = 0") ==
        "0,2,4,6,8,10,12,14,16,18");
}

TEST_CASE("block: the partition waits behind the failing message, polling goes on, and that is said once") {
  Service service(2);
  auto options = service.options();
  options.attempts_max = 2;
  options.after_attempts = AfterAttempts::block;
  std::atomic<bool> broken = true;
  std::atomic<int> said = 0;
  options.log = [&](std::string_view line) {
    said += line.starts_with("message_blocks_its_partition") ? 1 : 0;
  };
  service.send(letters(0, 20, 2));
  RunningConsumer consumer(options, [&](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    if (broken && m.partition() == 0 && m.offset() == 3) throw std::runtime_error("bug");
  });
  service.await_effects(13);
  eventually("it is tried on and on", [&] { return consumer.counters().retried > 30; });
  CHECK(consumer.counters().blocked == 1);
  CHECK(said == 1);
  CHECK(service.db.dead() == 0);
  broken = false;
  service.await_effects(20);
}

TEST_CASE("no offset is committed for what the database did not commit") {
  Service service;
  service.send(letters(0, 10));
  std::atomic<int> calls = 0;
  RunningConsumer consumer(service.options(), [&](Transaction&, const Message&) {
    ++calls;
    throw Retry("never");
  });
  eventually("it was tried a few times", [&] { return calls > 4; });
  consumer.stop();
  CHECK(service.committed() == -1);
  CHECK(service.db.number("SELECT count(*) FROM processed_msgs") == 0);
}

TEST_CASE("two members share the partitions, one joins, one leaves: every message takes effect once") {
  Service service(4);
  int sent = 0;
  const auto send_more = [&](int count) {
    service.send(letters(sent, count, 4));
    sent += count;
  };
  auto first = std::make_unique<RunningConsumer>(service.options(), record_effect);
  send_more(500);
  eventually(
      "the first has work", [&] { return first->counters().fresh > 0; }, Millis{40'000});
  RunningConsumer second(service.options(), record_effect);
  const auto second_works = [&] {
    send_more(20);
    return second.counters().fresh > 0;
  };
  eventually("the second has work", second_works, Millis{40'000});
  send_more(500);
  first.reset();
  send_more(500);
  const auto all = [&] { return service.db.number("SELECT count(DISTINCT msg) FROM effect") == sent; };
  eventually("all effects", all, Millis{60'000});
  CHECK(service.db.effects() == sent);
}

TEST_CASE("a new group starts where start_at says, and a partition added later is read from its beginning") {
  Service service(2);
  if (!service.kafka.real()) return;
  service.send(letters(0, 10, 2));
  auto options = service.options();
  options.start_at = StartAt::end;
  options.kafka["topic.metadata.refresh.interval.ms"] = "500";
  {
    RunningConsumer consumer(options, record_effect);
    eventually("the start is committed",
               [&] { return service.committed(0) == 5 && service.committed(1) == 5; });
    service.send(letters(10, 1, 2));
    service.await_effects(1);
  }
  service.kafka.add_partitions(service.topic, 3);
  auto added = letters(20, 5);
  for (auto& one : added) one.partition = 2;
  service.send(added);
  RunningConsumer again(options, record_effect);
  service.await_effects(6);
  CHECK(service.db.number("SELECT count(*) FROM effect WHERE part = 2") == 5);
}

TEST_CASE(
    "a group that Kafka forgot goes on where it once started, and skips nothing, though new groups start at "
    "the end") {
  Service service;
  if (!service.kafka.real()) return;
  service.send(letters(0, 10));
  auto options = service.options();
  options.start_at = StartAt::end;
  {
    RunningConsumer consumer(options, record_effect);
    eventually("the start is committed", [&] { return service.committed(0) == 10; });
    service.send(letters(10, 1));
    service.await_effects(1);
  }
  service.forget_group();
  service.send(letters(20, 3));  // while nobody was there
  RunningConsumer again(options, record_effect);
  service.await_effects(4);
  CHECK(service.db.effects() == 4);  // neither the ten of before, nor one of them twice
}

TEST_CASE("an offset that Kafka no longer has ends the loop with the reason, and never jumps") {
  Service service;
  if (!service.kafka.real()) return;
  service.send(letters(0, 5));
  {
    RunningConsumer consumer(service.options(), record_effect);
    service.await_effects(5);
  }
  CHECK(service.committed() == 5);
  service.send(letters(5, 10));
  delete_records(service.kafka.bootstrap(), service.topic, 0, 10);
  RunningConsumer again(service.options(), record_effect);
  eventually(
      "it ended", [&] { return again.ended(); }, Millis{40'000});
  INFO(again.error());
  CHECK(again.error().find("AUTO_OFFSET_RESET") != std::string::npos);
  CHECK(service.db.effects() == 5);
}

TEST_CASE("options that would break the promise are refused with the reason") {
  ConsumerOptions good{.name = "n", .postgres = "", .kafka = {{"bootstrap.servers", "x"}}, .topics = {"t"}};
  CHECK_NOTHROW(Consumer{good});
  for (const auto& [property, value] :
       std::map<std::string, std::string>{{"enable.auto.commit", "true"},
                                          {"enable.auto.offset.store", "true"},
                                          {"auto.offset.reset", "latest"},
                                          {"isolation.level", "read_uncommitted"},
                                          {"plugin.library.paths", "x"}}) {
    auto options = good;
    options.kafka[property] = value;
    CHECK_THROWS_WITH_AS(Consumer{options}, doctest::Contains(property.c_str()), ConsumerError);
  }
  auto options = good;
  options.topics.clear();
  CHECK_THROWS_AS(Consumer{options}, ConsumerError);
  options = good, options.batch_rows_max = 0;
  CHECK_THROWS_AS(Consumer{options}, ConsumerError);
  options = good, options.name.clear();
  CHECK_THROWS_AS(Consumer{options}, ConsumerError);
}

TEST_CASE("stop before run makes it return at once, and missing tables are an error") {
  Service service;
  Consumer consumer(service.options());
  consumer.stop();
  consumer.run(record_effect);
  TestDatabase empty;
  auto options = service.options();
  options.postgres = empty.uri();
  Consumer lost(options);
  CHECK_THROWS_AS(lost.run(record_effect), ConsumerError);
}

TEST_CASE("a broker that goes away is waited for, and stop ends the loop while it is away") {
  KafkaCluster kafka;
  kafka.create_topic("transfers", 1);
  ServiceDatabase db;
  ConsumerOptions options{.name = "ledger",
                          .postgres = db.database.uri(),
                          .kafka = {{"bootstrap.servers", kafka.bootstrap()}},
                          .topics = {"transfers"},
                          .log = [](std::string_view) {}};
  send(kafka.bootstrap(), "transfers", letters(0, 10));
  RunningConsumer consumer(options, record_effect);
  eventually(
      "the first", [&] { return db.effects() == 10; }, Millis{60'000});
  kafka.kill();
  kafka.start();
  send(kafka.bootstrap(), "transfers", letters(10, 10));
  eventually(
      "the rest", [&] { return db.effects() == 20; }, Millis{60'000});
  kafka.kill();
  const auto start = std::chrono::steady_clock::now();
  consumer.stop();
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds{20});
  CHECK(consumer.error().empty());
}
