#include <doctest/doctest.h>

#include <csignal>

#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

TEST_CASE("a committed row reaches Kafka, keeps its order, and is marked with where it is") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("flow", 3);
  rig.start();
  for (int i = 0; i < 50; ++i)
    rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, $2, to_json($3::text))",
            pg::Params{}.text(topic).text("k" + std::to_string(i % 5)).text(std::to_string(i)));
  rig.eventually_none_pending();
  const auto records = KafkaCluster::shared().read_all(topic);
  CHECK(records.size() == 50);
  CHECK(bodies_of(records, "k3") == std::vector<std::string>{"\"3\"", "\"8\"", "\"13\"", "\"18\"", "\"23\"",
                                                             "\"28\"", "\"33\"", "\"38\"", "\"43\"",
                                                             "\"48\""});
  for (const KafkaRecord& r : records)
    CHECK(rig.ask("SELECT kafka_partition, kafka_offset, status FROM outbox_msg WHERE msg_id = $1::uuid",
                  pg::Params{}.text(r.header("outbox-id").value())) ==
          std::to_string(r.partition) + "|" + std::to_string(r.offset) + "|SENT");
}

TEST_CASE("null and empty keys, null and empty bodies arrive as they are") {
  RelayRig rig{{.migrate = {.body_type = relay::BodyType::text}}};
  const std::string topic = KafkaCluster::shared().new_topic("nulls");
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, NULL, 'a'), ($1, '', 'b'), ($1, 'k', NULL), "
      "($1, 'k', '')",
      pg::Params{}.text(topic));
  rig.start();
  rig.eventually_none_pending();
  const auto records = KafkaCluster::shared().read_all(topic);
  REQUIRE(records.size() == 4);
  const auto find = [&](std::optional<std::string> key, std::optional<std::string> body) {
    return std::count_if(records.begin(), records.end(),
                         [&](const KafkaRecord& r) { return r.key == key && r.body == body; });
  };
  CHECK(find(std::nullopt, "a") == 1);
  CHECK(find("", "b") == 1);
  CHECK(find("k", std::nullopt) == 1);
  CHECK(find("k", "") == 1);
}

TEST_CASE("keys and headers with control characters, other scripts, and a kilobyte pass unchanged") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("odd");
  const std::string key = std::string("tab\t line\n bell\a ключ ") + std::string(1000, 'k');
  const std::string value = std::string("ünï\x01\x1f ") + std::string(1000, 'v');
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body, headers) VALUES ($1, $2, '1', "
      "jsonb_build_object('traceparent', $3::text, 'näme', 'x'))",
      pg::Params{}.text(topic).text(key).text(value));
  rig.start();
  rig.eventually_none_pending();
  const auto records = KafkaCluster::shared().read_all(topic);
  REQUIRE(records.size() == 1);
  CHECK(records[0].key == key);
  CHECK(records[0].header("traceparent") == value);
  CHECK(records[0].header("näme") == "x");
}

TEST_CASE("a body arrives byte for byte, whatever its type") {
  const std::string exact = R"({"n":12345678901234567890.10,"e":[],"u":"\u00e9"})";
  for (const relay::BodyType type :
       {relay::BodyType::json, relay::BodyType::text, relay::BodyType::bytea, relay::BodyType::jsonb}) {
    RelayRig rig{{.migrate = {.body_type = type}}};
    const std::string topic = KafkaCluster::shared().new_topic("exact");
    if (type == relay::BodyType::bytea) {
      rig.ask("SET bytea_output = escape");
      rig.ask("INSERT INTO outbox_msg (topic, body) VALUES ($1, $2::bytea)",
              pg::Params{}.text(topic).bytes(std::as_bytes(std::span{exact})));
    } else {
      rig.ask("INSERT INTO outbox_msg (topic, body) VALUES ($1, $2::text::" +
                  std::string{relay::to_string(type)} + ")",
              pg::Params{}.text(topic).text(exact));
    }
    rig.start();
    rig.eventually_none_pending();
    const auto records = KafkaCluster::shared().read_all(topic);
    REQUIRE(records.size() == 1);
    const std::string wanted =
        type == relay::BodyType::jsonb ? rig.ask("SELECT body::text FROM outbox_msg") : exact;
    CHECK(records[0].body == wanted);
    CHECK(rig.outboxd({"reconcile", "--strict"}).status.code == 0);
  }
}

TEST_CASE("a smaller id that commits after a larger one was sent is sent all the same") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("late");
  rig.start();
  pg::Session early = must(pg::Session::connect({.uri = rig.uri()}));
  must(early.exec("BEGIN"));
  must(early.exec("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, 'early', '1')",
                  pg::Params{}.text(topic)));
  rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, 'late', '2')", pg::Params{}.text(topic));
  rig.await("the larger id is sent", [&] { return rig.count("SENT") == "1"; });
  must(early.exec("COMMIT"));
  rig.await("the smaller id is sent", [&] { return rig.count("SENT") == "2"; });
}

// What a relay meets when a transaction was open for an hour, or over midnight: now() is when it began.
TEST_CASE("a row of a transaction that was open for an hour, or since yesterday, is sent when it commits") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("hour");
  rig.ask("SELECT nextval(pg_get_serial_sequence('outbox_msg', 'id')) FROM generate_series(1, 10)");
  rig.start();
  rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, 'k', '1')", pg::Params{}.text(topic));
  rig.await("the larger id is sent", [&] { return rig.count("SENT") == "1"; });
  int id = 0;
  for (const char* age : {"1 hour", "1 day", "40 days"}) {
    rig.ask(
        "INSERT INTO outbox_msg (id, topic, msg_key, body, created_at) OVERRIDING SYSTEM VALUE"
        " VALUES ($1::int, $2, 'k', '2', now() - $3::text::interval)",
        pg::Params{}.i32(++id).text(topic).text(age));
    rig.await("it is sent", [&] { return rig.count("SENT") == std::to_string(1 + id); });
  }
}

TEST_CASE("ids cached by a session that uses them much later are sent all the same") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("cached");
  rig.ask("SELECT format('ALTER SEQUENCE %s CACHE 50', pg_get_serial_sequence('outbox_msg', 'id'))");
  const std::string sequence = rig.ask(
      "SELECT coalesce(pg_get_serial_sequence('outbox_msg', 'id'), substring(column_default from "
      "'''(.*)''')) FROM information_schema.columns WHERE table_name = 'outbox_msg' AND column_name = 'id'");
  rig.ask("ALTER SEQUENCE " + sequence + " CACHE 50");
  rig.start();
  pg::Session other = must(pg::Session::connect({.uri = rig.uri()}));
  const auto insert = [&](pg::Session& s) {
    must(s.exec("INSERT INTO outbox_msg (topic, body) VALUES ($1, '1')", pg::Params{}.text(topic)));
  };
  insert(rig.sql());
  insert(other);
  rig.await("both are sent", [&] { return rig.count("SENT") == "2"; });
  insert(rig.sql());  // an id below the one that `other` had
  rig.await("the smaller id is sent", [&] { return rig.count("SENT") == "3"; });
}

TEST_CASE("the same msg_id inserted again goes out again: the consumer is the judge") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("again");
  for (const char* body : {"1", "2"})
    rig.ask(
        "INSERT INTO outbox_msg (msg_id, topic, body) VALUES ('01890000-0000-7000-8000-000000000001', $1, "
        "$2::text::json)",
        pg::Params{}.text(topic).text(body));
  rig.start();
  rig.eventually_none_pending();
  CHECK(KafkaCluster::shared().read_all(topic).size() == 2);
}

TEST_CASE("names with upper case, quotes and dots are quoted, never pasted") {
  RelayRig rig{{.migrate = {.table = {"My.Schema", "Out\"box' Msg"}}}};
  const std::string topic = KafkaCluster::shared().new_topic("names");
  rig.ask("INSERT INTO " + rig.table() + " (topic, body) VALUES ($1, '1')", pg::Params{}.text(topic));
  rig.start();
  rig.eventually_none_pending();
  CHECK(KafkaCluster::shared().read_all(topic).size() == 1);
}

TEST_CASE("server, client and relay in different time zones agree on when a row is due") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("zones");
  rig.ask("SELECT format('ALTER DATABASE %I SET timezone = ''Pacific/Auckland''', current_database())");
  rig.ask(
      "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''Pacific/Auckland''', "
      "current_database()); END $$");
  pg::Session other = must(pg::Session::connect({.uri = rig.uri()}));
  must(other.exec("SET timezone = 'America/Caracas'"));
  must(
      other.exec("INSERT INTO outbox_msg (topic, body, available_at) VALUES ($1, '1', now() - interval '1 "
                 "second'), ($1, '2', now() + interval '1 hour')",
                 pg::Params{}.text(topic)));
  rig.start();
  rig.await("the due row is sent", [&] { return rig.count("SENT") == "1"; });
  CHECK(rig.count("PENDING") == "1");
  const auto records = KafkaCluster::shared().read_all(topic);
  REQUIRE(records.size() == 1);
  CHECK(records[0].header("outbox-created-at") ==
        rig.ask("SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM "
                "outbox_msg WHERE status = 'SENT'"));
}

TEST_CASE("scheduled rows go out when they are due, in the order of their times") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("due");
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body, available_at) VALUES ($1, 'k', '2', now() + interval "
      "'900 ms'), ($1, 'k', '1', now() + interval '600 ms')",
      pg::Params{}.text(topic));
  rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, 'k', '0')", pg::Params{}.text(topic));
  rig.start();
  rig.eventually_none_pending();
  CHECK(bodies_of(KafkaCluster::shared().read_all(topic), "k") == std::vector<std::string>{"0", "1", "2"});
}

TEST_CASE("after_sent delete leaves no row and loses none") {
  RelayRig rig{{.source = "after_sent: delete"}};
  const std::string topic = KafkaCluster::shared().new_topic("deleted");
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body) SELECT $1, i::text, to_json(i) FROM generate_series(1, "
      "2000) i",
      pg::Params{}.text(topic));
  rig.start();
  rig.await("the table is empty", [&] { return rig.ask("SELECT count(*) FROM outbox_msg") == "0"; });
  CHECK(KafkaCluster::shared().read_all(topic).size() == 2000);
}

TEST_CASE("while asleep a hint wakes the relay long before its next poll") {
  RelayRig rig{{.source = "mode: notify, poll_interval: 60s"}};
  const std::string topic = KafkaCluster::shared().new_topic("hint");
  rig.start();
  rig.await("it is asleep", [&] {
    return rig.ask("SELECT last_value > extract(epoch FROM now()) * 1000 FROM outbox_asleep") == "t";
  });
  rig.ask("INSERT INTO outbox_msg (topic, body) VALUES ($1, '1')", pg::Params{}.text(topic));
  rig.await(
      "the row is sent", [&] { return rig.count("SENT") == "1"; }, Millis{15'000});
}

TEST_CASE("the relay makes the partitions of the days to come") {
  RelayRig rig{{.migrate = {.days_ahead = 0}}};
  const auto partitions = [&] {
    return std::stoi(rig.ask("SELECT count(*) FROM pg_inherits WHERE inhparent = 'outbox_msg'::regclass"));
  };
  const int before = partitions();
  rig.start();
  rig.await("seven more days are there", [&] { return partitions() >= before + 7; });
}
