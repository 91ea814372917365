// delivery: exactly_once where the relay is not told how a commit ended. The real outboxd and a broker of the
// test's own, behind a network that loses what the test wants.

#include <doctest/doctest.h>

#include <csignal>
#include <string>

#include "tests/relay/once.hpp"
#include "tests/support/fault_proxy.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

// How a request that ends a transaction begins behind its length: EndTxn, version 1 (librdkafka's).
const std::string end_transaction{"\0\x1a\0\x01", 4};

constexpr Millis doubt_patience{60'000};  // a commit is given up after 10 s

}  // namespace

TEST_CASE(
    "exactly once: a commit whose answer is lost is found in the ledger, one "
    "that never arrived is sent again, "
    "and when it arrives after all it changes nothing") {
  if (!real_kafka()) return;
  FaultProxy proxy;
  const std::string address = "127.0.0.1:" + std::to_string(proxy.port());
  KafkaCluster kafka({.settings = {"advertised.listeners=PLAINTEXT://" + address}});
  proxy.lead_to(port_of(kafka.bootstrap()));
  RigOptions options = exactly_once();
  options.kafka = address;
  RelayRig rig(std::move(options));
  const std::string topic = kafka.new_topic("once-doubt", 3);
  Process& relay = rig.start({.lanes = 1});
  insert_numbered(rig, topic, 1, 50);
  rig.eventually_none_pending(doubt_patience);

  const auto lose = [&](Toward toward, int from) {
    const int unclear = unclear_commits(rig);
    proxy.inflict_when({.kind = Fault::Kind::blackhole, .toward = toward}, end_transaction);
    insert_numbered(rig, topic, from, from + 49);
    rig.await(
        "a commit is lost", [&] { return !proxy.waiting(); }, doubt_patience);
    rig.eventually_none_pending(doubt_patience);
    CHECK(unclear_commits(rig) == unclear + 1);
  };
  lose(Toward::client, 51);
  CHECK(kafka.read_all(topic).size() == 100);  // of any transaction: none was sent again
  lose(Toward::server, 101);
  CHECK(kafka.read_all(topic).size() == 200);
  proxy.heal();  // the late one arrives
  insert_numbered(rig, topic, 151, 300);
  rig.eventually_none_pending(doubt_patience);
  relay.kill(SIGTERM);
  CHECK(relay.wait(Millis{30'000}).code == 0);
  each_once(rig, topic, 300, kafka);
}
