// A topic is replayed from offset 0 after the days of its messages were dropped: no second effect.

#include <doctest/doctest.h>

#include "kafka_letters.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/kafka.hpp"

using namespace outbox;
using namespace outbox::test;
using std::chrono::hours;

namespace {

std::string aged(int days, int n) {
  return v7(n, hours{24 * days});
}

}  // namespace

TEST_CASE(
    "replayed from offset 0 after its days were dropped: expired, no second effect, kept for an operator") {
  KafkaCluster& kafka = KafkaCluster::shared();
  const auto topic = kafka.new_topic("replay", 2);
  ServiceDatabase db;
  must(db.session.exec(
      "SELECT outbox_make_partition('processed_msgs', 'processed_msgs_default', "
      "(now() AT TIME ZONE 'UTC')::date - n, 'fillfactor = 100') FROM generate_series(2, 12) n"));
  std::vector<Letter> letters;
  for (int i = 0; i < 90; ++i) {  // thirty each of twelve days ago, of three, and without a time
    letters.push_back(letter(i % 3 == 0   ? aged(12, i)
                             : i % 3 == 1 ? aged(3, i)
                                          : "f81d4fae-7dec-41d0-a765-" + v7(i).substr(24)));
    letters.back().partition = i % 2;
  }
  send(kafka.bootstrap(), topic, letters);
  ConsumerOptions options{.name = topic,
                          .postgres = db.database.uri(),
                          .kafka = {{"bootstrap.servers", kafka.bootstrap()}},
                          .topics = {topic},
                          .horizon = hours{24 * 7},
                          .horizon_check = HorizonCheck::unchecked,
                          .maintain_interval = std::chrono::seconds{0},
                          .log = [](std::string_view) {}};
  {
    RunningConsumer first(options, record_effect);
    eventually(
        "all are applied", [&] { return db.effects() == 90; }, Millis{40'000});
  }
  CHECK(Inbox({.name = topic, .postgres = db.database.uri(), .horizon = hours{24 * 7}}).maintain().dropped >
        0);
  CHECK(db.number("SELECT count(*) FROM processed_msgs") == 60);

  options.kafka["group.id"] = topic + "-replayed";
  RunningConsumer again(options, record_effect);
  eventually(
      "all came again", [&] { return again.counters().expired + again.counters().duplicate == 90; },
      Millis{40'000});
  CHECK(again.counters().expired == 30);
  CHECK(again.counters().fresh == 0);
  CHECK(db.effects() == 90);
  CHECK(db.number("SELECT count(*) FROM dead_msgs WHERE verdict = 'expired' AND resolved_at IS NULL") == 30);
}
