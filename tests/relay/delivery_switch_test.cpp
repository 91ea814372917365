// Instances of one pipeline that are told to deliver in different ways. The real outboxd.

#include <doctest/doctest.h>

#include <csignal>

#include "tests/relay/once.hpp"

using namespace outbox;
using namespace outbox::test;

TEST_CASE(
    "an instance that delivers otherwise waits and says so, and has every lane once the others have stopped, "
    "both ways each row is sent once") {
  if (!real_kafka()) return;
  const RigOptions once = exactly_once();
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("switch", 3);
  const auto lanes_of = [&](const std::string& instance) {
    return rig.ask("SELECT count(*) FROM outbox_lease WHERE owner = $1 AND lease_until > now()",
                   pg::Params{}.text(instance + "/rig"));
  };
  // `waits` joins while `works` has the lanes; then `works` stops.
  int rows = 0;
  const auto more = [&] {
    insert_numbered(rig, topic, rows + 1, rows + 100);
    rows += 100;
    rig.eventually_none_pending(Millis{60'000});
  };
  const auto change = [&](Process& works, const std::string& working, const std::string& in_force,
                          const std::string& waiting) -> Process& {
    more();
    const std::uint16_t port = free_port();
    rig.options().admin = "127.0.0.1:" + std::to_string(port);
    Process& waits = rig.start({.instance = waiting});
    rig.await("the newcomer works", [&] { return waits.errors().find(" standby ") != std::string::npos; });
    const std::string said = "instance " + working + "/rig works with delivery: " + in_force;
    rig.await("the newcomer says why it waits", [&] {
      const HttpReply shown = http_get({.port = port}, "/readyz");
      return shown.status == 503 && shown.body.find(said) != std::string::npos;
    });
    CHECK(waits.errors().find("in_force=" + in_force + " instance=" + working + "/rig configured=") !=
          std::string::npos);
    more();
    CHECK(lanes_of(working) == "8");
    CHECK(lanes_of(waiting) == "0");
    CHECK(waits.errors().find("lanes_taken") == std::string::npos);
    works.kill(SIGTERM);
    CHECK(works.wait(Millis{30'000}).code == 0);
    rig.await("the newcomer has the lanes", [&] { return lanes_of(waiting) == "8"; });
    more();
    CHECK(http_get({.port = port}, "/readyz").status == 200);
    CHECK(waits.errors().find("delivery_agrees") != std::string::npos);
    return waits;
  };
  Process& least = rig.start({.instance = "least"});
  rig.await("the first has the lanes", [&] { return lanes_of("least") == "8"; });
  rig.pipeline(once.pipeline);
  Process& exactly = change(least, "least", "at_least_once", "exactly");
  const std::string status = rig.outboxd({"status"}).output;
  CHECK_MESSAGE(status.find(", exactly_once\n") != std::string::npos, status);
  rig.pipeline("");
  change(exactly, "exactly", "exactly_once", "again");
  each_once(rig, topic, rows);
}
