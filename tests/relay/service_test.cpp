#include <doctest/doctest.h>

#include <csignal>

#include "tests/relay/rig.hpp"
#include "tests/support/notify_socket.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

RigOptions watched(const NotifySocket& systemd, RigOptions options = {}) {
  options.admin = admin_socket;
  options.env = {{"NOTIFY_SOCKET", systemd.path()}, {"WATCHDOG_USEC", "2000000"}};
  return options;
}

bool said(const RelayRig& rig, std::string_view text) {
  return rig.logs().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE(
    "READY comes once lanes are owned and Kafka answered, then STATUS with the lag, and the watchdog is "
    "fed") {
  NotifySocket systemd;
  RelayRig rig(watched(systemd));
  Process& relay = rig.start();
  rig.await("READY", [&] { return systemd.count("READY=1") == 1; });
  CHECK(said(rig, "lanes_taken"));
  rig.await("STATUS with the lag", [&] { return systemd.count("STATUS=rig: 0/s, pending 0") > 0; });
  const auto fed = systemd.count("WATCHDOG=1");
  rig.await("the watchdog is fed again and again", [&] { return systemd.count("WATCHDOG=1") >= fed + 3; });
  relay.kill(SIGTERM);
  CHECK(relay.wait().code == 0);
  CHECK(systemd.count("STOPPING=1") == 1);
  CHECK(systemd.count("READY=1") == 1);
}

TEST_CASE("a standby is READY as well: it would take over") {
  NotifySocket owners;
  RelayRig rig(watched(owners));
  rig.start();
  rig.await("the owner is READY", [&] { return owners.count("READY=1") == 1; });
  NotifySocket standbys;
  rig.options().env["NOTIFY_SOCKET"] = standbys.path();
  rig.options().admin = "off";
  rig.start();
  rig.await("the standby is READY", [&] { return standbys.count("READY=1") == 1; });
}

TEST_CASE(
    "while Kafka is away from the start there is no READY, but more time is asked for and the watchdog fed") {
  NotifySocket systemd;
  RelayRig rig(watched(systemd, {.kafka = "127.0.0.1:9"}));
  rig.start();
  rig.await("it owns the lanes", [&] { return said(rig, "lanes_taken"); });
  rig.await("STATUS says why", [&] { return systemd.count("STATUS=rig: waiting: Kafka is away for 1") > 0; });
  CHECK(systemd.count("READY=1") == 0);
  CHECK(systemd.count("EXTEND_TIMEOUT_USEC=30000000") > 5);
  CHECK(systemd.count("WATCHDOG=1") > 5);
}

TEST_CASE("work that stands still starves the watchdog, and feeds it again once it makes progress") {
  NotifySocket systemd;
  RelayRig rig(watched(systemd));
  rig.start();
  rig.await("READY", [&] { return systemd.count("READY=1") == 1; });
  rig.ask("BEGIN");
  rig.ask("LOCK TABLE outbox_msg IN ACCESS EXCLUSIVE MODE");
  rig.await(
      "it is stuck", [&] { return said(rig, " stuck next="); }, Millis{15'000});
  const auto fed = systemd.count("WATCHDOG=1");
  CHECK_FALSE(happens_within(Millis{3000}, [&] { return systemd.count("WATCHDOG=1") > fed; }));
  rig.ask("ROLLBACK");
  rig.await("it is fed again", [&] { return systemd.count("WATCHDOG=1") > fed; });
}

TEST_CASE("SIGHUP: what may change does, the rest is named, and systemd is told") {
  NotifySocket systemd;
  RelayRig rig(watched(systemd));
  Process& relay = rig.start();
  rig.await("READY", [&] { return systemd.count("READY=1") == 1; });
  rig.options().process = "  survey_interval: 1s\nlog: { level: warn }\n";
  rig.options().source = "poll_interval: 200ms";
  rig.options().pipeline = "    publish: { in_flight_rows: 9999 }\n";
  rig.write();
  relay.kill(SIGHUP);
  rig.await("it is told", [&] {
    return systemd.count("RELOADING=1\nMONOTONIC_USEC=") == 1 && systemd.count("READY=1") == 2;
  });
  CHECK(said(rig, "needs_restart option=pipelines[rig].source.poll_interval"));
  CHECK(said(rig, "needs_restart option=pipelines[rig].publish.in_flight_rows"));
  CHECK_FALSE(said(rig, "option=log.level"));
  relay.kill(SIGTERM);
  CHECK(relay.wait().code == 0);
  CHECK_FALSE(said(rig, "stop_requested"));  // log.level is warn by now
}

TEST_CASE("SIGHUP with a bad file changes nothing, names its faults, and the relay sends on") {
  NotifySocket systemd;
  RelayRig rig(watched(systemd));
  const std::string topic = KafkaCluster::shared().new_topic("reload", 1);
  Process& relay = rig.start();
  rig.await("READY", [&] { return systemd.count("READY=1") == 1; });
  rig.write("log: { level: error }\npipelines:\n  - name: rig\n    source: { lanes: 0 }\n");
  relay.kill(SIGHUP);
  rig.await("the faults are named",
            [&] { return said(rig, "pipelines[rig].source.lanes: `0` is out of bounds"); });
  rig.write("log: [");
  relay.kill(SIGHUP);
  rig.await("it is READY as before", [&] { return systemd.count("READY=1") == 3; });
  rig.ask("INSERT INTO outbox_msg (topic, body) VALUES ($1, '1')", pg::Params{}.text(topic));
  rig.eventually_none_pending();
  relay.kill(SIGTERM);
  CHECK(relay.wait().code == 0);
  CHECK(said(rig, "stop_requested"));
}
