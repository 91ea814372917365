// Every property that an operator may set, run once: what `config check` lets pass, no producer dies of. The
// list is librdkafka's own, with the values that it says each takes.

#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "relay/core/kafka/properties.hpp"
#include "relay/kafka/producer.hpp"
#include "tests/contract/broker_contract.hpp"
#include "tests/support/kafka.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

using Properties = std::map<std::string, std::string>;

std::string described() {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  rd_kafka_conf_properties_show(out);
  std::fclose(out);
  std::string copy(text, size);
  std::free(text);
  return copy;
}

std::string trimmed(const std::string& text) {
  const auto from = text.find_first_not_of(' ');
  return from == std::string::npos ? "" : text.substr(from, text.find_last_not_of(' ') - from + 1);
}

// Both ends of a range, each of a choice, and else something that is no name of anything.
std::vector<std::string> values_of(const std::string& range) {
  if (range.empty()) return {"x"};
  std::vector<std::string> out;
  if (const auto dots = range.find(" .. "); dots != std::string::npos)
    return {trimmed(range.substr(0, dots)), trimmed(range.substr(dots + 4))};
  std::istringstream in(range);
  for (std::string each; std::getline(in, each, ',');) out.push_back(trimmed(each));
  return out;
}

// Name and value, of producers and of both.
std::vector<std::pair<std::string, std::string>> all_properties() {
  std::vector<std::pair<std::string, std::string>> out;
  std::istringstream lines(described());
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells;
    std::istringstream in(line);
    for (std::string cell; std::getline(in, cell, '|');) cells.push_back(trimmed(cell));
    if (cells.size() < 6 || cells[0] == "Property" || (cells[1] != "P" && cells[1] != "*")) continue;
    for (std::string& value : values_of(cells[2])) out.emplace_back(cells[0], std::move(value));
  }
  return out;
}

enum class End { refused, made, sent };

End run(KafkaCluster& kafka, const std::string& topic, const Properties& properties) {
  relay::KafkaOptions options;
  options.properties = properties;
  options.properties.try_emplace("bootstrap.servers", kafka.bootstrap());
  auto made = relay::KafkaProducer::make(options, relay::no_wake_fd);
  if (!made) return End::refused;
  const auto& producer = *made;
  const OwnedMessage message{topic, "k", "v"};
  if (producer->produce({&message.view(), relay::Partition{0}, 0}, topic, {}) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return End::made;
  std::vector<relay::Delivery> deliveries;
  const auto deadline = std::chrono::steady_clock::now() + Millis{60};
  while (deliveries.empty() && std::chrono::steady_clock::now() < deadline)
    if (const auto event = producer->poll(Millis{5});
        event && rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_DR)
      producer->take_deliveries(event.get(), deliveries);
  const bool sent = !deliveries.empty() && !deliveries[0].refusal;
  return sent ? End::sent : End::made;
}

}  // namespace

TEST_CASE("no property that may be set ends the process: each value runs once, also where tokens log in") {
  KafkaCluster kafka({.kind = KafkaKind::mock});
  const std::string topic = kafka.new_topic("walk");
  std::set<std::string> tried;
  int sent = 0;
  const Properties tokens{{"security.protocol", "sasl_plaintext"}, {"sasl.mechanism", "OAUTHBEARER"}};
  for (const auto& [name, value] : all_properties()) {
    if (name == "bootstrap.servers" || relay::refused_because(name, value)) continue;
    CAPTURE(name);
    CAPTURE(value);
    const End end = run(kafka, topic, {{name, value}});
    sent += end == End::sent ? 1 : 0;
    tried.insert(name);
    if (name.find("sasl") == std::string::npos && !name.starts_with("ssl") &&
        name.find("protocol") == std::string::npos)
      continue;
    Properties with = tokens;
    with[name] = value;
    run(kafka, topic, with);
  }
  MESSAGE(tried.size(), " properties, ", sent, " values sent a message");
  CHECK(tried.size() > 80);
  CHECK(sent > 80);
}
