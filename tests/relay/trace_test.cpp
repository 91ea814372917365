#include <doctest/doctest.h>

#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

constexpr const char* parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

KafkaRecord sent(RelayRig& rig, const std::string& topic) {
  rig.ask(
      "INSERT INTO outbox_msg (topic, body, headers) VALUES ($1, '1', jsonb_build_object('traceparent', "
      "$2::text, "
      "'tracestate', 'vendor=1'))",
      pg::Params{}.text(topic).text(parent));
  rig.start();
  rig.eventually_none_pending();
  return KafkaCluster::shared().read_all(topic).at(0);
}

}  // namespace

TEST_CASE("a trace passes through the outbox unchanged") {
  RelayRig rig;
  const KafkaRecord record = sent(rig, KafkaCluster::shared().new_topic("trace"));
  CHECK(record.header("traceparent") == parent);
  CHECK(record.header("tracestate") == "vendor=1");
}

TEST_CASE("with publish.tracestate: stamp a trace leads to the outbox row, and its parent stays as it was") {
  RelayRig rig({.pipeline = "    publish: { tracestate: stamp }\n"});
  const KafkaRecord record = sent(rig, KafkaCluster::shared().new_topic("trace"));
  CHECK(record.header("traceparent") == parent);
  CHECK(record.header("tracestate") == "outboxd=rig:1,vendor=1");
}
