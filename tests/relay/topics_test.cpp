// Which topics rows may go to, what Kafka calls them, who makes them, and partitions that a row names itself.

#include <doctest/doctest.h>

#include <algorithm>

#include "relay/core/kafka/partitioner.hpp"
#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

void insert(RelayRig& rig, const std::string& topic, const std::string& key, const std::string& body,
            const std::string& headers = "{}") {
  rig.ask("INSERT INTO outbox_msg (topic, msg_key, body, headers) VALUES ($1, $2, $3, $4)",
          pg::Params{}.text(topic).text(key).untyped(body).untyped(headers));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("with topics.create a missing topic is made as configured, and its rows are sent") {
  if (!KafkaCluster::shared().real()) return;
  RelayRig rig{{.pipeline =
                    "    topics: { create: on, create_partitions: 5, create_replication: 1, create_configs: "
                    "'retention.ms=3600000, cleanup.policy=delete' }\n"}};
  const std::string topic = KafkaCluster::unique_topic("made");
  for (int i = 0; i < 10; ++i) insert(rig, topic, "k", std::to_string(i));
  rig.start();
  rig.await("they are sent", [&] { return rig.count("SENT") == "10"; });
  CHECK(rig.ask("SELECT partitions FROM outbox_topic") == "5");
}

TEST_CASE("a topic that cannot be made waits with the cluster's reason, and others go on") {
  if (!KafkaCluster::shared().real()) return;
  RelayRig rig{{.pipeline = "    topics: { create: on, create_replication: 7 }\n"}};
  const std::string topic = KafkaCluster::unique_topic("unmade");
  const std::string present = KafkaCluster::shared().new_topic("present");
  insert(rig, topic, "k", "1");
  insert(rig, present, "k", "1");
  rig.start();
  rig.await("one is held", [&] { return rig.count("HELD") == "1"; });
  rig.await("the other is sent", [&] { return rig.count("SENT") == "1"; });
  CHECK_MESSAGE(has(rig.ask("SELECT reason FROM outbox_hold"), "could not be created"),
                rig.ask("SELECT reason FROM outbox_hold"));
}

TEST_CASE("a topic outside of the allow list waits, others go on, and it is let go once it is allowed") {
  RelayRig rig;
  const std::string allowed = KafkaCluster::shared().new_topic("pay");
  const std::string other = KafkaCluster::shared().new_topic("other");
  rig.pipeline("    topics: { allow: 'pay*' }\n");
  insert(rig, other, "k", "1");
  insert(rig, allowed, "k", "2");
  insert(rig, other, "k", "3");
  Process& first = rig.start();
  rig.await("the allowed one is sent", [&] { return rig.count("SENT") == "1"; });
  rig.await("the others are held", [&] { return rig.count("HELD") == "2"; });
  CHECK(rig.ask("SELECT reason FROM outbox_hold") == "kafka: topics.allow does not name it");
  first.kill(SIGTERM);
  first.wait();
  rig.pipeline("    topics: { allow: 'pay*, other*' }\n");
  rig.start();
  rig.await(
      "they are sent too", [&] { return rig.count("SENT") == "3"; }, Millis{60'000});
  CHECK(bodies_of(KafkaCluster::shared().read_all(other), "k") == std::vector<std::string>{"1", "3"});
}

TEST_CASE("a rewritten topic is known by its own name in the database and by the other in Kafka") {
  const std::string kafka = KafkaCluster::shared().new_topic("eu.orders", 3);
  const std::string tail = kafka.substr(std::string("eu.orders").size());
  RelayRig rig{{.pipeline = "    topics: { rewrite: 'orders_v1*=orders*', prefix: 'eu.' }\n"}};
  const std::string topic = "orders_v1" + tail;
  for (int i = 0; i < 5; ++i) insert(rig, topic, "k", std::to_string(i));
  rig.start();
  rig.await("they are sent", [&] { return rig.count("SENT") == "5"; });
  CHECK(bodies_of(KafkaCluster::shared().read_all(kafka), "k") ==
        std::vector<std::string>{"0", "1", "2", "3", "4"});
  CHECK(rig.ask("SELECT topic = $1, partitions FROM outbox_topic", pg::Params{}.text(topic)) == "t|3");
}

TEST_CASE(
    "rows that name their partition go there, and one that names none of the topic's dies with the reason") {
  RelayRig rig{{.pipeline = "    publish: { partition_header: shelf }\n"}};
  const std::string topic = KafkaCluster::shared().new_topic("shelves", 4);
  for (int i = 0; i < 8; ++i)
    insert(rig, topic, std::to_string(i), "1", R"({"shelf": ")" + std::to_string(i % 4) + "\"}");
  insert(rig, topic, "wrong", "1", R"({"shelf": "4"})");
  rig.start();
  rig.eventually_none_pending();
  CHECK(rig.count("SENT") == "8");
  for (const KafkaRecord& r : KafkaCluster::shared().read_all(topic))
    CHECK(r.partition == std::stoi(*r.key) % 4);
  CHECK(has(rig.ask("SELECT last_error FROM outbox_msg WHERE status = 'DEAD'"), "asks for partition '4'"));
}

TEST_CASE(
    "rows whose column names their partition go there, plain or due, marked or deleted, with both "
    "deliveries") {
  for (const std::string delivery : {"at_least_once", "exactly_once"}) {
    if (delivery == "exactly_once" && !KafkaCluster::shared().real()) continue;
    for (const std::string after : {"mark", "delete"}) {
      CAPTURE(delivery);
      CAPTURE(after);
      RelayRig rig{{.source = "partition_column: '\"Shelf\"', after_sent: " + after,
                    .pipeline = "    delivery: " + delivery +
                                "\n    ledger: { topic: " + KafkaCluster::unique_topic("ledger") + " }\n"}};
      const std::string topic = KafkaCluster::shared().new_topic("shelves", 4);
      rig.ask("ALTER TABLE outbox_msg ADD COLUMN \"Shelf\" int");
      rig.ask(
          "INSERT INTO outbox_msg (topic, msg_key, body, available_at, \"Shelf\") SELECT $1, 'k' || n, "
          "to_json(n % 4), CASE WHEN n > 8 THEN now() END, n % 4 FROM generate_series(1, 16) n",
          pg::Params{}.text(topic));
      rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) SELECT $1, 'by its key', to_json($2::int)",
              pg::Params{}.text(topic).i32(relay::partition_of_key("by its key", 4).value));
      rig.start();
      rig.eventually_none_pending();
      CHECK(rig.count("SENT") == (after == "mark" ? "17" : "0"));
      const auto records = KafkaCluster::shared().read_all(topic);
      CHECK(records.size() == 17);
      for (const KafkaRecord& r : records) CHECK(std::to_string(r.partition) == r.body);
    }
  }
}

TEST_CASE("a row whose column names no partition of the topic dies, and once mended it goes where it says") {
  RelayRig rig{{.source = "partition_column: shelf"}};
  const std::string topic = KafkaCluster::shared().new_topic("shelves", 4);
  rig.ask("ALTER TABLE outbox_msg ADD COLUMN shelf smallint");
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body, shelf) VALUES ($1, 'a', '3', 3), ($1, 'b', '1', 4), "
      "($1, 'c', '2', -1)",
      pg::Params{}.text(topic));
  rig.start();
  rig.eventually_none_pending();
  CHECK(rig.count("SENT") == "1");
  CHECK(rig.ask("SELECT string_agg(last_error, '; ' ORDER BY id) FROM outbox_msg WHERE status = 'DEAD'") ==
        "source.partition_column asks for partition '4', the topic has 0 to 3; source.partition_column asks "
        "for "
        "partition '-1', the topic has 0 to 3");
  rig.ask("UPDATE outbox_msg SET shelf = (body #>> '{}')::int WHERE status = 'DEAD'");
  CHECK(rig.outboxd({"dead", "retry", "--topic", topic}).status.code == 0);
  rig.await("the mended ones are sent", [&] { return rig.count("SENT") == "3"; });
  CHECK(rig.outboxd({"replay", "--topic", topic, "--reason", "lost"}).status.code == 0);
  rig.await("all are sent again",
            [&] { return KafkaCluster::shared().read_all(topic).size() == 6 && rig.count("SENT") == "3"; });
  for (const KafkaRecord& r : KafkaCluster::shared().read_all(topic))
    CHECK(std::to_string(r.partition) == r.body);
}

TEST_CASE(
    "what the cluster refuses again and again is dead after max_attempts, and without it is sent in the "
    "end") {
  constexpr std::int16_t produce_request = 0;
  for (const bool bounded : {true, false}) {
    CAPTURE(bounded);
    KafkaCluster mock({.kind = KafkaKind::mock});
    mock.create_topic("grudge", 1);
    RelayRig rig{
        {.pipeline = bounded ? "    publish: { max_attempts: 2 }\n" : "", .kafka = mock.bootstrap()}};
    mock.fail_requests(produce_request, std::vector<int>(bounded ? 50 : 4, -1));
    insert(rig, "grudge", "k", "1");
    insert(rig, "grudge", "k", "2");
    rig.start();
    rig.await("it is decided", [&] {
      return bounded ? rig.count("DEAD") == "1" && rig.count("HELD") == "1" : rig.count("SENT") == "2";
    });
    if (bounded) CHECK(has(rig.ask("SELECT last_error FROM outbox_msg WHERE status = 'DEAD'"), "UNKNOWN"));
  }
}

TEST_CASE("reconcile knows topics by the names that Kafka has for them, also where two of them go to one") {
  auto& kafka = KafkaCluster::shared();
  const std::string mark = KafkaCluster::unique_topic("m");
  const std::string late = "eu.z." + mark, both = "eu.c." + mark;
  for (const auto& topic : {late, both}) kafka.create_topic(topic, 2);
  RelayRig rig{{.pipeline = "    topics: { rewrite: 'a.*=z.*, e.*=c.*', prefix: 'eu.' }\n"}};
  for (const char* first : {"a.", "c.", "e."})  // Kafka's names have another order than these
    rig.ask(
        "INSERT INTO outbox_msg (topic, msg_key, body) SELECT $1, i::text, to_json(i) FROM "
        "generate_series(1, 20) i",
        pg::Params{}.text(first + mark));
  rig.start();
  rig.eventually_none_pending();
  CHECK(kafka.read_all(late).size() == 20);
  CHECK(kafka.read_all(both).size() == 40);
  const auto all = rig.outboxd({"reconcile", "--strict"});
  CHECK_MESSAGE(all.status.code == 0, all.output, all.errors);
  CHECK(all.output.find("60  verified") != std::string::npos);
  const auto one = rig.outboxd({"reconcile", "--strict", "--topic", "a." + mark});
  CHECK_MESSAGE(one.status.code == 0, one.output, one.errors);
  CHECK(one.output.find("20  verified") != std::string::npos);
}
