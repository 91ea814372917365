#include "relay/kafka/statistics.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace outbox::relay {
namespace {

using nlohmann::json;

std::int64_t integer(const json& from, const char* name) {
  const auto at = from.find(name);
  return at != from.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

Micros micros(const json& from, const char* window, const char* name) {
  const auto at = from.find(window);
  return Micros{at != from.end() && at->is_object() ? integer(*at, name) : 0};
}

BrokerStatistics read_broker(const json& from) {
  return {.name = from.value("nodename", std::string{}),
          .up = from.value("state", std::string{}) == "UP",
          .round_trip_mean = micros(from, "rtt", "avg"),
          .round_trip_p99 = micros(from, "rtt", "p99"),
          .queued_p99 = micros(from, "int_latency", "p99"),
          .waiting_requests = integer(from, "waitresp_cnt"),
          .request_errors = integer(from, "txerrs") + integer(from, "rxerrs"),
          .request_timeouts = integer(from, "req_timeouts"),
          .request_retries = integer(from, "txretries"),
          .connects = integer(from, "connects")};
}

// Bootstrap addresses and the coordinator's second connection stand beside the brokers, without a number.
bool is_broker(const json& from) {
  return from.is_object() && integer(from, "nodeid") >= 0 && from.contains("nodename") &&
         from["nodename"].is_string() && from.value("source", json{}) != "logical";
}

void merge(BrokerStatistics& into, const BrokerStatistics& b) {
  into.up = into.up && b.up;
  into.round_trip_mean = std::max(into.round_trip_mean, b.round_trip_mean);
  into.round_trip_p99 = std::max(into.round_trip_p99, b.round_trip_p99);
  into.queued_p99 = std::max(into.queued_p99, b.queued_p99);
  into.waiting_requests += b.waiting_requests;
  into.request_errors += b.request_errors;
  into.request_timeouts += b.request_timeouts;
  into.request_retries += b.request_retries;
  into.connects += b.connects;
}

void cap(std::vector<BrokerStatistics>& brokers) {
  if (brokers.size() <= brokers_told_max) return;
  BrokerStatistics others{.name = std::string{other_brokers}, .up = true};
  for (std::size_t i = brokers_told_max; i < brokers.size(); ++i) merge(others, brokers[i]);
  brokers.resize(brokers_told_max);
  brokers.push_back(std::move(others));
}

}  // namespace

std::optional<KafkaStatistics> parse_kafka_statistics(std::string_view text) {
  // Topics are most of it, and nothing of them is wanted.
  const auto without_topics = [](int depth, json::parse_event_t event, json& parsed) {
    return !(depth == 1 && event == json::parse_event_t::key && parsed == "topics");
  };
  const json all = json::parse(text, without_topics, false);
  if (!all.is_object() || !all.contains("brokers") || !all["brokers"].is_object()) return std::nullopt;
  KafkaStatistics out{.queued_messages = integer(all, "msg_cnt"), .queued_bytes = integer(all, "msg_size")};
  for (const json& broker : all["brokers"])
    if (is_broker(broker)) out.brokers.push_back(read_broker(broker));
  std::ranges::sort(out.brokers, {}, &BrokerStatistics::name);
  cap(out.brokers);
  return out;
}

}  // namespace outbox::relay
