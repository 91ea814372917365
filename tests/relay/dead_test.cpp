#include <doctest/doctest.h>

#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

void insert(RelayRig& rig, const std::string& topic, const std::string& key, const std::string& body_sql) {
  rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, $2, " + body_sql + ")",
          pg::Params{}.text(topic).text(key));
}
const std::string two_megabytes = "to_json(repeat('x', 2000000))";

}  // namespace

TEST_CASE("a body over the topic's limit dies with its reason, holds its key, and stops nobody else") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("large", 2);
  insert(rig, topic, "bad", "'1'");
  insert(rig, topic, "good", "'2'");
  insert(rig, topic, "bad", two_megabytes);
  insert(rig, topic, "good", "'3'");
  insert(rig, topic, "bad", "'4'");
  rig.start();
  rig.eventually_none_pending();
  CHECK(rig.count("DEAD") == "1");
  CHECK(rig.count("HELD") == "1");
  CHECK(rig.ask("SELECT last_error LIKE '%max.message.bytes%' FROM outbox_msg WHERE status = 'DEAD'") == "t");
  const auto records = KafkaCluster::shared().read_all(topic);
  CHECK(bodies_of(records, "bad") == std::vector<std::string>{"1"});
  CHECK(bodies_of(records, "good") == std::vector<std::string>{"2", "3"});
  insert(rig, topic, "bad", "'5'");
  rig.await("a later row of the key is held too", [&] { return rig.count("HELD") == "2"; });
  CHECK(bodies_of(KafkaCluster::shared().read_all(topic), "bad") == std::vector<std::string>{"1"});
}

TEST_CASE("on_dead continue lets later messages of the key pass") {
  RelayRig rig{{.source = "on_dead: continue"}};
  const std::string topic = KafkaCluster::shared().new_topic("passes");
  insert(rig, topic, "k", two_megabytes);
  insert(rig, topic, "k", "'2'");
  rig.start();
  rig.eventually_none_pending();
  CHECK(rig.count("DEAD") == "1");
  CHECK(rig.count("HELD") == "0");
  CHECK(bodies_of(KafkaCluster::shared().read_all(topic), "k") == std::vector<std::string>{"2"});
}

TEST_CASE("a header that forges the relay's is refused at its row") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("forged");
  rig.ask(
      "INSERT INTO outbox_msg (topic, body, headers) VALUES ($1, '1', '{\"Outbox-Id\": \"mine\"}'), ($1, "
      "'2', '{}')",
      pg::Params{}.text(topic));
  rig.start();
  rig.eventually_none_pending();
  CHECK(rig.count("DEAD") == "1");
  CHECK(rig.count("SENT") == "1");
}

TEST_CASE("a missing topic holds its rows and no others, and when it is there they go out in order") {
  RelayRig rig;
  const std::string missing = KafkaCluster::unique_topic("missing");
  const std::string present = KafkaCluster::shared().new_topic("present");
  for (int i = 0; i < 20; ++i) {
    insert(rig, missing, "k", "'" + std::to_string(i) + "'");
    insert(rig, present, "k", "'" + std::to_string(i) + "'");
  }
  rig.start();
  rig.eventually_none_pending();
  CHECK(rig.count("SENT") == "20");
  CHECK(rig.count("HELD") == "20");
  CHECK(rig.ask("SELECT scope, topic = $1 FROM outbox_hold", pg::Params{}.text(missing)) == "topic|t");
  insert(rig, missing, "k", "'20'");
  KafkaCluster::shared().create_topic(missing);
  rig.await(
      "all are sent", [&] { return rig.count("SENT") == "41"; }, Millis{60'000});
  std::vector<std::string> wanted;
  for (int i = 0; i <= 20; ++i) wanted.push_back(std::to_string(i));
  CHECK(bodies_of(KafkaCluster::shared().read_all(missing), "k") == wanted);
  CHECK(rig.ask("SELECT count(*) FROM outbox_hold") == "0");
}

TEST_CASE("a name that no topic can have kills the message, not the relay") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("named");
  rig.ask("INSERT INTO outbox_msg (topic, body) VALUES ('no such/topic name!', '1'), ($1, '2')",
          pg::Params{}.text(topic));
  rig.start();
  rig.await("the good one is sent", [&] { return rig.count("SENT") == "1"; });
  rig.await("the other is out of the way", [&] { return rig.count("PENDING") == "0"; });
}

TEST_CASE("what a dead message held goes out in order once an operator retries it") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("retried", 1, {{"max.message.bytes", "2000"}});
  insert(rig, topic, "k", "to_json(repeat('x', 3000))");
  for (int i = 1; i <= 5; ++i) insert(rig, topic, "k", "'" + std::to_string(i) + "'");
  rig.start();
  rig.await("one dead, five held", [&] { return rig.count("DEAD") == "1" && rig.count("HELD") == "5"; });
  rig.ask("SELECT outbox_dead_discard(id, 'too large for its topic') FROM outbox_msg WHERE status = 'DEAD'");
  rig.await("the five are sent", [&] { return rig.count("SENT") == "5"; });
  CHECK(bodies_of(KafkaCluster::shared().read_all(topic), "k") ==
        std::vector<std::string>{"1", "2", "3", "4", "5"});
}
