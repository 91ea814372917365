#include "relay/core/kafka/properties.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace outbox::relay {
namespace {

constexpr std::string_view acks_reason =
    "a row may be marked only after every in-sync replica has its message";
constexpr std::string_view timeout_reason =
    "a message that expires inside an idempotent sequence ends the producer, and the row would be sent again";
constexpr std::string_view retries_reason =
    "giving up after some retries would let a later message of the key pass an earlier one";
constexpr std::string_view servers_reason = "write it as bootstrap.servers";
constexpr std::string_view callback_reason = "callbacks belong to the relay";
constexpr std::string_view in_flight_reason = "an idempotent producer keeps its order with five at most";
constexpr std::string_view queue_reason =
    "the relay bounds what is in flight, by its own limits on rows and bytes";
constexpr std::string_view code_reason = "it would load foreign code into the relay";

constexpr std::array guarded{
    GuardedProperty{"acks", "all|-1", acks_reason},
    GuardedProperty{"request.required.acks", "all|-1", acks_reason},
    GuardedProperty{"enable.idempotence", "true",
                    "without it a retry can duplicate a message or pass an earlier one of its key"},
    GuardedProperty{"message.timeout.ms", "0", timeout_reason},
    GuardedProperty{"delivery.timeout.ms", "0", timeout_reason},
    GuardedProperty{"retries", "2147483647", retries_reason},
    GuardedProperty{"message.send.max.retries", "2147483647", retries_reason},
    GuardedProperty{
        "partitioner", "",
        "the relay computes the partition itself, as the Java client does, over a pinned partition count"},
    GuardedProperty{"max.in.flight", "1|2|3|4|5", in_flight_reason},
    GuardedProperty{"max.in.flight.requests.per.connection", "1|2|3|4|5", in_flight_reason},
    GuardedProperty{"enable.gapless.guarantee", "false",
                    "one message that Kafka refuses would end the producer, and every purge too"},
    GuardedProperty{"api.version.request", "true",
                    "idempotence and headers need brokers that say what they know"},
    GuardedProperty{"queue.buffering.max.messages", "", queue_reason},
    GuardedProperty{"queue.buffering.max.kbytes", "", queue_reason},
    GuardedProperty{"message.max.bytes", "",
                    "the relay judges each message by its own topic's max.message.bytes"},
    GuardedProperty{
        "batch.size", "1..1000000",
        "a broker refuses whole batches, so none may exceed a topic's max.message.bytes; the relay lowers it "
        "further where a topic takes less"},
    GuardedProperty{"queuing.strategy", "fifo", "any other order would turn messages of a key round"},
    GuardedProperty{"delivery.report.only.error", "false", "a row is marked by its delivery report"},
    GuardedProperty{"produce.offset.report", "true", "partition and offset are recorded with the row"},
    GuardedProperty{"transactional.id", "",
                    "it belongs to the delivery mode and is made from pipeline and lane"},
    GuardedProperty{"transaction.timeout.ms", "",
                    "the relay bounds its transactions itself: thirty seconds, then one is given up"},
    GuardedProperty{"enabled_events", "", callback_reason},
    GuardedProperty{"log.queue", "true", "librdkafka's log goes into the relay's"},
    GuardedProperty{"statistics.interval.ms", "0",
                    "the relay has figures of its own, and nobody reads these"},
    GuardedProperty{"internal.termination.signal", "0", "signals belong to the relay"},
    GuardedProperty{"metadata.broker.list", "", servers_reason},
    GuardedProperty{"test.mock.num.brokers", "0", "messages would end in a mock cluster inside the relay"},
    GuardedProperty{"plugin.library.paths", "", code_reason},
    GuardedProperty{"ssl.engine.location", "", code_reason},
    GuardedProperty{"ssl.providers", "", code_reason},
    GuardedProperty{
        "enable.sasl.oauthbearer.unsecure.jwt", "false",
        "it signs tokens with nothing, and librdkafka asks for them in a way that ends the process"},
    GuardedProperty{
        "sasl.kerberos.kinit.cmd", "",
        "it would run a shell command; renew tickets outside, with sasl.kerberos.min.time.before.relogin 0"},
};

constexpr std::array<std::string_view, 9> secrets{
    "sasl.password", "ssl.key.password",        "ssl.keystore.password",
    "ssl.key.pem",   "sasl.oauthbearer.config", "sasl.oauthbearer.client.secret",
    "ssl_key",       "ssl.truststore.password", "sasl.oauthbearer.assertion.private.key.pem",
};

// Beside the secrets. Those of a file are named by their ending.
constexpr std::array<std::string_view, 11> credentials{
    "sasl.username",
    "sasl.oauthbearer.client.id",
    "ssl.certificate.pem",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.ca.location",
    "ssl.crl.location",
    "ssl.keystore.location",
    "ssl_certificate",
    "ssl_ca",
};

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// `choice` is a value, or two numbers with ".." between them.
bool is(std::string_view value, std::string_view choice) {
  const auto dots = choice.find("..");
  if (dots == std::string_view::npos) return value == choice;
  const auto given = number(value);
  return given && *given >= number(choice.substr(0, dots)) && *given <= number(choice.substr(dots + 2));
}

bool among(std::string_view value, std::string_view choices) {
  while (!choices.empty()) {
    const auto bar = choices.find('|');
    if (is(value, choices.substr(0, bar))) return true;
    choices.remove_prefix(bar == std::string_view::npos ? choices.size() : bar + 1);
  }
  return false;
}

}  // namespace

std::span<const GuardedProperty> guarded_properties() {
  return guarded;
}

std::optional<std::string_view> refused_because(std::string_view property, std::string_view value) {
  for (const GuardedProperty& entry : guarded) {
    if (entry.name != property) continue;
    if (among(value, entry.allowed)) return std::nullopt;
    return entry.reason;
  }
  if (property.ends_with("_cb")) return callback_reason;
  return std::nullopt;
}

bool secret_property(std::string_view property) {
  return std::ranges::find(secrets, property) != secrets.end();
}

bool credential_property(std::string_view property) {
  return secret_property(property) || std::ranges::find(credentials, property) != credentials.end();
}

bool credential_file_property(std::string_view property) {
  return credential_property(property) && property.ends_with(".location");
}

}  // namespace outbox::relay
