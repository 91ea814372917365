// delivery: exactly_once where Kafka's access control, or the ledger's topic, stands in the way. The real
// outboxd, a broker of the test's own.

#include <doctest/doctest.h>

#include <csignal>

#include "tests/relay/once.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

constexpr const char* relay_principal = "User:CN=kafka-cluster client";

KafkaOptions with_rights() {
  return {.settings = {"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SSL",
                       "listener.name.sasl_ssl.ssl.client.auth=required",
                       "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                       "super.users=User:ANONYMOUS"},
          .script_options = {"--tls-sasl"}};
}

void acls(KafkaCluster& kafka, const char* change, std::vector<std::string> what) {
  what.insert(what.begin(), {"acls", change, "--force", "--allow-principal", relay_principal});
  kafka.run_tool(what);
}

RigOptions secured(KafkaCluster& kafka, const std::string& ledger) {
  RigOptions options = exactly_once(ledger);
  options.kafka = kafka.secure_bootstrap();
  options.properties = ", security.protocol: ssl, ssl.ca.location: '" + kafka.folder() +
                       "/tls/ca.crt', ssl.certificate.location: '" + kafka.folder() +
                       "/tls/client.crt', ssl.key.location: '" + kafka.folder() + "/tls/client.key'";
  options.admin = admin_socket;
  return options;
}

}  // namespace

TEST_CASE(
    "exactly once: each right that is missing, and a ledger that would forget, is named with what mends it: "
    "nothing is sent before, each row once after") {
  KafkaCluster kafka{with_rights()};
  if (!kafka.real()) return;
  const auto grant = [&](const std::vector<std::string>& what) { acls(kafka, "--add", what); };
  const std::string ledger = KafkaCluster::unique_topic("ledger");
  RelayRig rig(secured(kafka, ledger));
  const std::string topic = kafka.new_topic("once-rights");
  grant({"--operation", "Write", "--operation", "Describe", "--operation", "DescribeConfigs", "--topic",
         topic});
  insert_numbered(rig, topic, 1, 100);
  Process* relay = &rig.start({.lanes = 2});
  rig.await("it works", [&] { return relay->errors().find("lane_stopped") != std::string::npos; });
  const auto told = [&](const std::string& reason, const std::string& advice) {
    CAPTURE(reason);
    rig.await(
        "each stopped lane says why it is stopped",
        [&] {
          const auto lanes = stopped_lanes(rig);
          return !lanes.empty() && std::ranges::all_of(lanes, [&](const auto& lane) {
            return lane["why"].template get<std::string>().find(reason) != std::string::npos &&
                   lane["why"].template get<std::string>().find(advice) != std::string::npos;
          });
        },
        Millis{60'000});
    CHECK(relay->errors().find(reason) != std::string::npos);
    CHECK(rig.count("PENDING") == "100");  // of each step
  };
  told("ledger topic " + ledger + ": ", "grant the relay DESCRIBE, READ and WRITE on it");
  grant({"--operation", "Describe", "--operation", "DescribeConfigs", "--operation", "Write", "--topic",
         ledger});
  told("it is missing, and could not be created",
       "grant the relay CREATE on it, or create it: kafka-topics.sh");
  kafka.create_topic(ledger, 1, {{"cleanup.policy", "delete"}});
  told("it has 1 partitions, and 2 lanes need one each", "grant the relay ALTER on it, or widen it");
  kafka.add_partitions(ledger, 2);
  told("its cleanup.policy is delete", "--add-config cleanup.policy=compact");
  kafka.run_tool({"configs", "--alter", "--entity-type", "topics", "--entity-name", ledger, "--add-config",
                  "cleanup.policy=compact"});
  told("the lane's transactional id cannot be taken",
       "grant the relay DESCRIBE and WRITE on the transactional ids");
  CHECK(kafka.read_all(topic).empty());
  grant({"--operation", "Write", "--operation", "Describe", "--transactional-id", "outboxd-rig-",
         "--resource-pattern-type", "prefixed"});
  rig.eventually_none_pending(Millis{60'000});
  // A lane's first open finds an empty ledger, and needs no right to read it; the next one does.
  relay->kill(SIGTERM);
  CHECK(relay->wait(Millis{30'000}).code == 0);
  insert_numbered(rig, topic, 101, 200);
  relay = &rig.start({.lanes = 2});
  rig.await("it works", [&] { return relay->errors().find("lane_stopped") != std::string::npos; });
  told("the ledger may not be read", "grant the relay READ on its topic");
  grant({"--operation", "Read", "--topic", ledger});
  rig.eventually_none_pending(Millis{60'000});
  each_once(rig, topic, 200, kafka);
}
