#pragma once
// Numbered rows, and what must be true of them in Kafka: none is lost, and the first occurrences of a key
// rise.

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "tests/relay/rig.hpp"

namespace outbox::test {

/// Rows `from` to `to` in one transaction, dealt to `keys` keys.
inline void insert_numbered(RelayRig& rig, const std::string& topic, int from, int to, int keys = 10) {
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body) SELECT $1, (i % $4::int)::text, to_json(i) FROM "
      "generate_series($2::int, $3::int) i",
      pg::Params{}.text(topic).i32(from).i32(to).i32(keys));
}

/// Answers how many records were copies of an earlier one.
inline int complete_and_in_order(KafkaCluster& kafka, const std::string& topic, int count) {
  const auto records = kafka.read_all(topic);
  std::set<int> seen;
  std::map<std::string, int> last;
  for (const KafkaRecord& r : records) {
    const int number = std::stoi(r.body.value());
    if (!seen.insert(number).second) continue;
    CHECK(number > last[*r.key]);
    last[*r.key] = number;
  }
  CHECK(std::ssize(seen) == count);
  return static_cast<int>(std::ssize(records) - std::ssize(seen));
}

}  // namespace outbox::test
