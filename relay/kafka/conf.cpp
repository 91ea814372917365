#include "relay/kafka/conf.hpp"

#include <array>
#include <utility>

#include "relay/core/kafka/properties.hpp"
#include "relay/core/kafka/version.hpp"

namespace outbox::relay {
namespace {

using Pair = std::pair<const char*, const char*>;

// Better for the relay than librdkafka's own; an operator may set others.
constexpr std::array defaults{
    Pair{"client.id", "outboxd"},
    Pair{"linger.ms", "0"},
    Pair{"batch.num.messages", "10000"},
    Pair{"socket.nagle.disable", "true"},
    Pair{"socket.keepalive.enable", "true"},
    Pair{"reconnect.backoff.max.ms", "2000"},   // the broker is back: seconds matter, ten of them are many
    Pair{"allow.auto.create.topics", "false"},  // a misspelt topic is held and named, not made
    Pair{"topic.metadata.refresh.sparse", "true"},
    Pair{"statistics.interval.ms", "15000"},
};

// What the promise hangs on, and what the adapter itself is built on.
constexpr std::array fixed{
    Pair{"enable.idempotence", "true"},
    Pair{"acks", "all"},
    Pair{"message.timeout.ms", "0"},
    Pair{"log.queue", "true"},
    Pair{"message.max.bytes", "1000000000"},           // each topic's own limit is judged before
    Pair{"queue.buffering.max.kbytes", "2147483647"},  // else one message larger than it could never be sent
};

void set(rd_kafka_conf_t* conf, const std::string& name, const std::string& value, std::string& faults) {
  std::array<char, 512> text{};
  if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), text.data(), text.size()) == RD_KAFKA_CONF_OK)
    return;
  faults += (faults.empty() ? "" : "; ") + std::string{text.data()};
}

void set_all(rd_kafka_conf_t* conf, std::span<const Pair> pairs, std::string& faults) {
  for (const auto& [name, value] : pairs) set(conf, name, value, faults);
}

}  // namespace

Result<KafkaConf> make_kafka_conf(const KafkaOptions& options) {
  KafkaConf conf{rd_kafka_conf_new()};
  std::string faults;
  set_all(conf.get(), defaults, faults);
  set(conf.get(), "batch.size", std::to_string(options.batch_bytes_max), faults);
  // A transaction does not wait long for a topic that was deleted under it.
  if (!options.transactional_id.empty()) set(conf.get(), "topic.metadata.propagation.max.ms", "5000", faults);
  for (const auto& [name, value] : options.properties) {
    if (const auto reason = refused_because(name, value)) {
      faults += (faults.empty() ? "" : "; ") + name + ": " + value + " is refused: " + std::string{*reason};
      continue;
    }
    const bool too_large =
        name == "batch.size" && std::strtoll(value.c_str(), nullptr, 10) > options.batch_bytes_max;
    if (!too_large) set(conf.get(), name, value, faults);
  }
  set_all(conf.get(), fixed, faults);
  if (!options.transactional_id.empty()) {
    const std::string timeout = std::to_string(options.transaction_timeout.count());
    set(conf.get(), "transactional.id", options.transactional_id, faults);
    set(conf.get(), "transaction.timeout.ms", timeout, faults);
    set(conf.get(), "message.timeout.ms", timeout, faults);  // what expires aborts its transaction, no more
  }
  set(conf.get(), "queue.buffering.max.messages", std::to_string(options.in_flight_messages_max), faults);
  rd_kafka_conf_set_events(
      conf.get(), RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_LOG | RD_KAFKA_EVENT_STATS);
  if (!faults.empty())
    return failure(Disposition::fatal, "kafka: " + faults, "", "correct the kafka section");
  return conf;
}

Status check_kafka_version() {
  const auto version = static_cast<std::int32_t>(rd_kafka_version());
  const auto verdict = judge_kafka_version(version);
  if (!verdict.refused) return {};
  return failure(Disposition::fatal, "librdkafka " + kafka_version_text(version) + ": " + verdict.text(), "",
                 "install another librdkafka");
}

}  // namespace outbox::relay
