// A primary with a synchronous standby, the primary lost under load, the standby promoted.

#include <doctest/doctest.h>

#include "tests/relay/numbered.hpp"

using namespace outbox;
using namespace outbox::test;

TEST_CASE("failover to a synchronous standby under load: nothing lost, nothing made up, keys in order") {
  PostgresServer primary;
  PostgresServer standby({.standby_of = &primary});
  {
    pg::Session admin = must(pg::Session::connect({.uri = primary.uri()}));
    must(admin.exec("ALTER SYSTEM SET synchronous_standby_names = '*'"));
    must(admin.exec("SELECT pg_reload_conf()"));
    eventually("the standby is synchronous", [&] {
      return must(admin.exec("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"))
                 .integer(0, 0) == 1;
    });
  }
  RelayRig rig{{.source = "poll_interval: 100ms, batch_rows: 500", .server = primary.uri()}};
  const std::string uri = rig.uri();
  const std::string database = uri.substr(uri.rfind('/') + 1);
  const std::string topic = KafkaCluster::shared().new_topic("failover", 3);
  insert_numbered(rig, topic, 1, 20'000, 100);
  Process& relay = rig.start({.uri = "postgresql://postgres@127.0.0.1:" + std::to_string(primary.port()) +
                                     ",127.0.0.1:" + std::to_string(standby.port()) + "/" + database +
                                     "?target_session_attrs=read-write"});
  rig.await("it is under way", [&] { return rig.count("SENT") != "0"; });
  primary.kill();
  standby.promote();

  pg::Session after = must(pg::Session::connect({.uri = standby.uri(database)}));
  const auto unsent = [&] { return ask(after, "SELECT count(*) FROM outbox_msg WHERE status <> 'SENT'"); };
  CHECK(unsent() != "0");
  rig.await(
      "all is sent", [&] { return unsent() == "0"; }, Millis{60'000});
  CHECK(ask(after, "SELECT count(*) FROM outbox_msg") == "20000");
  complete_and_in_order(KafkaCluster::shared(), topic, 20'000);
  CHECK(relay.running());
}

// As a failover to an asynchronous standby makes it, in one server: while marks are under way, the rows that they name
// are gone and their ids are given out again.
TEST_CASE(
    "marks that outlive a failover to a standby that lagged mark none of the new rows that have those ids") {
  RelayRig rig{{.ttl = "10s"}};
  KafkaCluster& kafka = KafkaCluster::shared();
  const std::string topic = kafka.new_topic("given-again", 1);
  Process& relay = rig.start();
  insert_numbered(rig, topic, 1, 100);
  rig.eventually_none_pending();
  pg::Session locker = must(pg::Session::connect({.uri = rig.uri()}));
  insert_numbered(rig, topic, 101, 200);
  must(locker.exec("BEGIN"));
  must(locker.exec("LOCK TABLE outbox_lease IN ACCESS EXCLUSIVE MODE"));  // no mark ends from here on
  insert_numbered(rig, topic, 201, 400);
  rig.await("they are in Kafka", [&] { return kafka.read_all(topic).size() >= 400; });
  REQUIRE(rig.count("PENDING") != "0");
  must(locker.exec("DELETE FROM outbox_msg WHERE body::text::int > 200"));
  must(
      locker.exec("SELECT setval(pg_get_serial_sequence('outbox_msg', 'id'), "
                  "(SELECT max(id) FROM outbox_msg))"));
  must(locker.exec("INSERT INTO outbox_msg (topic, msg_key, body) SELECT '" + topic +
                   "', (i % 10)::text, to_json(i) FROM generate_series(401, 800) i"));
  must(locker.exec("COMMIT"));
  rig.eventually_none_pending(Millis{60'000});
  CHECK(rig.count("SENT") == "600");
  complete_and_in_order(kafka, topic, 800);
  CHECK(relay.errors().find("rows_replaced") != std::string::npos);
}
