// An application whose INSERTs are laid out for Debezium's event router, and the view that takes them.

#include <doctest/doctest.h>

#include "relay/core/kafka/partitioner.hpp"
#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

constexpr std::string_view prefix = "outbox.event.";

void make_view(RelayRig& rig) {
  const auto made = rig.outboxd({"migrate", "--view", "outboxevent", "--column", "id=msg_id", "--column",
                                 "aggregatetype=topic", "--column", "aggregateid=msg_key", "--column",
                                 "type=header:eventType", "--column", "payload=body"});
  REQUIRE_MESSAGE(made.status.code == 0, made.errors);
}

}  // namespace

TEST_CASE(
    "what an application writes in Debezium's layout arrives with its id, key, headers and body, byte for "
    "byte") {
  auto& kafka = KafkaCluster::shared();
  RelayRig rig{{.pipeline = "    topics: { prefix: outbox.event. }\n    publish: { headers: debezium }\n"}};
  make_view(rig);
  const std::string topic = kafka.new_topic(std::string(prefix) + "Order", 3);
  const std::string aggregate = topic.substr(prefix.size());
  const std::string body = R"({ "amount" : 12.50 , "note":"\u00e9","amount":1e2 })";
  rig.ask("BEGIN");
  rig.ask(
      "INSERT INTO outboxevent (id, aggregatetype, aggregateid, type, payload) VALUES (gen_random_uuid(), "
      "$1, 'gone', 'Paid', '0')",
      pg::Params{}.text(aggregate));
  rig.ask("ROLLBACK");
  const std::string id = rig.ask("SELECT gen_random_uuid()");
  rig.ask(
      "INSERT INTO outboxevent (id, aggregatetype, aggregateid, type, payload) VALUES ($1, $2, 'order-1', "
      "'Paid', $3)",
      pg::Params{}.untyped(id).text(aggregate).untyped(body));
  rig.ask(
      "INSERT INTO outboxevent (aggregatetype, aggregateid, payload) SELECT $1, 'many', to_json(n) FROM "
      "generate_series(1, 50) n "
      "ORDER BY n",
      pg::Params{}.text(aggregate));
  CHECK_FALSE(rig.sql().exec("DELETE FROM outboxevent WHERE aggregateid = 'order-1'"));
  rig.start();
  rig.eventually_none_pending();
  CHECK(rig.count("SENT") == "51");
  const auto records = kafka.read_all(topic);
  CHECK(records.size() == 51);
  std::vector<std::string> numbers;
  for (int n = 1; n <= 50; ++n) numbers.push_back(std::to_string(n));
  CHECK(bodies_of(records, "many") == numbers);
  const auto order = std::ranges::find(records, std::optional<std::string>("order-1"), &KafkaRecord::key);
  REQUIRE(order != records.end());
  CHECK(order->body == body);
  CHECK(order->header("id") == id);
  CHECK(order->header("outbox-id") == id);
  CHECK(order->header("eventType") == "Paid");
  CHECK(order->partition == relay::partition_of_key("order-1", 3).value);
}
