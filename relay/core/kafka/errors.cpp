#include "relay/core/kafka/errors.hpp"

#include <algorithm>
#include <array>

namespace outbox::relay {
namespace {

using enum Refusal;

constexpr std::string_view grant = "grant the relay's user WRITE and DESCRIBE on the topic";
constexpr std::string_view create = "create the topic, or correct the row's";
constexpr std::string_view login = "check the kafka section's sasl and ssl properties";
constexpr std::string_view shrink =
    "raise the topic's max.message.bytes and retry the message, or discard it";
constexpr std::string_view clock =
    "check the clocks of relay and brokers, and the topic's message.timestamp settings";
constexpr std::string_view reachable =
    "check bootstrap.servers, the brokers' advertised listeners and the network";
constexpr std::string_view kept = "check that no other property than the documented ones is set";
constexpr std::string_view replicas =
    "bring the topic's replicas back; until then it takes nothing with acks=all";
constexpr std::string_view policy =
    "read the broker's log: a rule of the topic or the cluster refuses what is sent";

constexpr std::array table{
    KafkaError{-199, "_BAD_MSG", unsent, "if it repeats, compare the versions of librdkafka and the brokers"},
    KafkaError{-198, "_BAD_COMPRESSION", topic, "set another compression.type"},
    KafkaError{-197, "_DESTROY", unsent, ""},
    KafkaError{-196, "_FAIL", unsent, ""},
    KafkaError{-195, "_TRANSPORT", unsent, reachable},
    KafkaError{-194, "_CRIT_SYS_RESOURCE", producer,
               "raise the process's limits on memory, threads or files"},
    KafkaError{-193, "_RESOLVE", unsent, reachable},
    // Cannot come while message.timeout.ms is 0; if it does, the sequence has a gap that only a new producer
    // closes.
    KafkaError{-192, "_MSG_TIMED_OUT", producer, kept},
    KafkaError{-190, "_UNKNOWN_PARTITION", topic,
               "the topic has fewer partitions than before: was it created again?"},
    KafkaError{-188, "_UNKNOWN_TOPIC", topic, create},
    KafkaError{-187, "_ALL_BROKERS_DOWN", unsent, reachable},
    KafkaError{-186, "_INVALID_ARG", message,
               "the topic's name or the message is nothing that Kafka can hold"},
    KafkaError{-185, "_TIMED_OUT", unsent, ""},
    KafkaError{-184, "_QUEUE_FULL", unsent, ""},
    KafkaError{-181, "_SSL", unsent, login},
    KafkaError{-180, "_WAIT_COORD", unsent, ""},
    KafkaError{-172, "_STATE", producer, ""},
    KafkaError{-169, "_AUTHENTICATION", unsent, login},
    KafkaError{-166, "_TIMED_OUT_QUEUE", unsent, ""},
    KafkaError{-165, "_UNSUPPORTED_FEATURE", topic,
               "the brokers are too old for idempotent producers or headers"},
    KafkaError{-153, "_RETRY", unsent, ""},
    KafkaError{-152, "_PURGE_QUEUE", unsent, ""},
    KafkaError{-151, "_PURGE_INFLIGHT", unsent, ""},
    KafkaError{-150, "_FATAL", producer, ""},
    KafkaError{-149, "_INCONSISTENT", producer, ""},
    KafkaError{-148, "_GAPLESS_GUARANTEE", producer, kept},
    KafkaError{-144, "_FENCED", producer, ""},
    // The broker hit something that it has no name for: mostly passing (a disk, a bug), so it is sent again.
    KafkaError{-1, "UNKNOWN", unsent, "read the broker's log"},
    KafkaError{2, "INVALID_MSG", unsent, "if it repeats, look for a network device that changes packets"},
    KafkaError{3, "UNKNOWN_TOPIC_OR_PART", topic, create},
    KafkaError{4, "INVALID_MSG_SIZE", message, shrink},
    KafkaError{5, "LEADER_NOT_AVAILABLE", unsent, ""},
    KafkaError{6, "NOT_LEADER_FOR_PARTITION", unsent, ""},
    KafkaError{7, "REQUEST_TIMED_OUT", unsent, ""},
    KafkaError{8, "BROKER_NOT_AVAILABLE", unsent, ""},
    KafkaError{9, "REPLICA_NOT_AVAILABLE", unsent, ""},
    KafkaError{10, "MSG_SIZE_TOO_LARGE", message, shrink},
    KafkaError{13, "NETWORK_EXCEPTION", unsent, ""},
    KafkaError{14, "COORDINATOR_LOAD_IN_PROGRESS", unsent, ""},
    KafkaError{15, "COORDINATOR_NOT_AVAILABLE", unsent, ""},
    KafkaError{16, "NOT_COORDINATOR", unsent, ""},
    KafkaError{17, "TOPIC_EXCEPTION", message,
               "the topic's name is none that Kafka allows: correct the row's"},
    KafkaError{18, "RECORD_LIST_TOO_LARGE", message,
               "raise the topic's segment.bytes, or discard the message"},
    KafkaError{19, "NOT_ENOUGH_REPLICAS", unsent, replicas},
    KafkaError{20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", unsent, replicas},
    KafkaError{21, "INVALID_REQUIRED_ACKS", producer, kept},
    KafkaError{29, "TOPIC_AUTHORIZATION_FAILED", topic, grant},
    KafkaError{31, "CLUSTER_AUTHORIZATION_FAILED", producer,
               "grant the relay's user IDEMPOTENT_WRITE on the cluster (brokers before 2.8 need it)"},
    // The record's time is the relay's own, so it is never this message alone.
    KafkaError{32, "INVALID_TIMESTAMP", topic, clock},
    KafkaError{33, "UNSUPPORTED_SASL_MECHANISM", unsent, login},
    KafkaError{34, "ILLEGAL_SASL_STATE", unsent, login},
    KafkaError{35, "UNSUPPORTED_VERSION", topic,
               "the brokers are too old for idempotent producers or headers"},
    KafkaError{41, "NOT_CONTROLLER", unsent, ""},
    KafkaError{42, "INVALID_REQUEST", topic, policy},
    KafkaError{43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", topic,
               "raise the topic's message format: headers need version 2"},
    KafkaError{44, "POLICY_VIOLATION", topic, policy},
    KafkaError{45, "OUT_OF_ORDER_SEQUENCE_NUMBER", producer, ""},
    KafkaError{46, "DUPLICATE_SEQUENCE_NUMBER", producer, ""},
    KafkaError{47, "INVALID_PRODUCER_EPOCH", producer, ""},
    KafkaError{48, "INVALID_TXN_STATE", producer, ""},
    KafkaError{49, "INVALID_PRODUCER_ID_MAPPING", producer, ""},
    KafkaError{51, "CONCURRENT_TRANSACTIONS", unsent, ""},
    KafkaError{53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", producer,
               "grant the relay's user WRITE and DESCRIBE on its transactional ids"},
    KafkaError{54, "SECURITY_DISABLED", unsent, login},
    KafkaError{56, "KAFKA_STORAGE_ERROR", unsent, "look at the broker's disks"},
    KafkaError{58, "SASL_AUTHENTICATION_FAILED", unsent, login},
    KafkaError{59, "UNKNOWN_PRODUCER_ID", producer, ""},
    KafkaError{60, "REASSIGNMENT_IN_PROGRESS", unsent, ""},
    KafkaError{74, "FENCED_LEADER_EPOCH", unsent, ""},
    KafkaError{75, "UNKNOWN_LEADER_EPOCH", unsent, ""},
    KafkaError{76, "UNSUPPORTED_COMPRESSION_TYPE", topic, "set another compression.type"},
    // A broker's own check of the record: a compacted topic, for one, takes no message without a key.
    KafkaError{87, "INVALID_RECORD", message, "a compacted topic takes no message without a key"},
    KafkaError{89, "THROTTLING_QUOTA_EXCEEDED", unsent, ""},
    KafkaError{90, "PRODUCER_FENCED", producer, ""},
};
static_assert(std::ranges::adjacent_find(table, std::ranges::greater_equal{}, &KafkaError::code) ==
                  table.end(),
              "searched by halves");

constexpr KafkaError unlisted{0, "", topic, policy};

Disposition disposition_of(Refusal refusal) {
  switch (refusal) {
    case unsent:
      return Disposition::retry;
    case message:
    case topic:
      return Disposition::quarantine;
    case producer:
      return Disposition::fatal;
  }
  return Disposition::fatal;
}

}  // namespace

std::span<const KafkaError> kafka_errors() {
  return table;
}

const KafkaError& kafka_error(std::int32_t code) {
  const auto found = std::ranges::lower_bound(table, code, {}, &KafkaError::code);
  return found != table.end() && found->code == code ? *found : unlisted;
}

bool cluster_answered(std::int32_t code) {
  constexpr std::int32_t unknown = -1;  // the broker's own "something went wrong"
  return code == unknown || code > 0;
}

TopicVerdict topic_verdict(std::int32_t code) {
  switch (code) {
    case 0:
      return {true, TopicState::present};
    case -188:  // _UNKNOWN_TOPIC
    case 3:     // UNKNOWN_TOPIC_OR_PART
    case 17:    // TOPIC_EXCEPTION: no topic can have that name
      return {true, TopicState::missing};
    case 29:  // TOPIC_AUTHORIZATION_FAILED
      return {true, TopicState::forbidden};
    default:
      return {};
  }
}

Error to_error(std::int32_t code, std::string_view context, std::string_view detail) {
  const KafkaError& row = kafka_error(code);
  Error error;
  error.disposition = disposition_of(row.refusal);
  error.code = row.name.empty() ? "KAFKA " + std::to_string(code) : std::string{row.name};
  error.message = std::string{context};
  if (!detail.empty()) error.message += ": " + std::string{detail};
  error.advice = std::string{row.advice};
  return error;
}

}  // namespace outbox::relay
