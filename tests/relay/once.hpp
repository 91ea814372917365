#pragma once
// What tests of `delivery: exactly_once` have in common: its options, and what must be true in the end.

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <string_view>

#include "tests/relay/numbered.hpp"

namespace outbox::test {

inline RigOptions exactly_once(const std::string& ledger = KafkaCluster::unique_topic("ledger")) {
  RigOptions options;
  options.pipeline = "    delivery: exactly_once\n    ledger: { topic: " + ledger + " }\n";
  return options;
}

// Every row once, each key in order, and each row marked with where it is.
inline void each_once(RelayRig& rig, const std::string& topic, int count,
                      KafkaCluster& kafka = KafkaCluster::shared()) {
  const auto records = kafka.read_all(topic, Isolation::read_committed);
  std::map<std::string, int> copies;
  std::map<std::string, int> last;
  for (const KafkaRecord& r : records) {
    const std::string body = r.body.value();
    copies[body] += 1;
    CHECK(std::stoi(body) > last[r.key.value()]);
    last[r.key.value()] = std::stoi(body);
    REQUIRE(
        rig.ask(
            "SELECT count(*) FROM outbox_msg WHERE status = 'SENT' AND id = $1 AND kafka_partition = $2 "
            "AND kafka_offset = $3",
            pg::Params{}.i64(std::stoll(r.header("outbox-seq").value())).i32(r.partition).i64(r.offset)) ==
        "1");
  }
  CHECK(std::ssize(copies) == count);
  CHECK(std::ssize(records) == count);
}

/// As /status shows them; the rig's admin socket must be on.
inline nlohmann::json stopped_lanes(RelayRig& rig) {
  const HttpReply reply = rig.shown("/status");
  if (reply.status != 200) return nlohmann::json::array();
  return nlohmann::json::parse(reply.body)["pipelines"][0]["transactions"]["lanes_stopped"];
}

/// How often the rig's relays could not tell how a commit ended.
inline int unclear_commits(const RelayRig& rig) {
  constexpr std::string_view said = "the commit was not answered with success";
  const std::string logs = rig.logs();
  int count = 0;
  for (auto at = logs.find(said); at != std::string::npos; at = logs.find(said, at + said.size())) ++count;
  return count;
}

inline bool real_kafka() {
  if (KafkaCluster::shared().real()) return true;
  MESSAGE("skipped: only a real broker has transactions that a reader can see");
  return false;
}

}  // namespace outbox::test
