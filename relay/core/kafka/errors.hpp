#pragma once
// What an error of Kafka means to the relay: one table from librdkafka's code to what it ruins, its name, and
// what to do. The codes of the broker (positive) are the protocol's; the negative ones are librdkafka's own.
// Numbers only, so that the core needs no library; relay/kafka/codes.cpp proves at compile time that they
// are librdkafka's. Pure.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "relay/core/types.hpp"

namespace outbox::relay {

struct KafkaError {
  std::int32_t code = 0;
  std::string_view name;  ///< as librdkafka names it, without its prefix
  Refusal refusal = Refusal::unsent;
  std::string_view advice;  ///< for people; empty where nothing needs to be done
};

/// Every code that the relay has an opinion on, ascending.
/// Source: https://kafka.apache.org/protocol#protocol_error_codes, rdkafka.h
[[nodiscard]] std::span<const KafkaError> kafka_errors();

/// Shape: the row of `code`; for a code the table does not know, one that holds the topic: never a message is
/// given up, nor the relay stopped, for a reason that nobody has thought through.
[[nodiscard]] const KafkaError& kafka_error(std::int32_t code);

/// Shape: whether this refusal as `unsent` is an answer of the cluster about the message, and not of a
/// network, a login, a purge or a producer that ended.
[[nodiscard]] bool cluster_answered(std::int32_t code);

/// Shape: what a topic's error in a metadata answer says about the topic. Codes that say nothing final answer
/// `present` false in `known`: ask again.
struct TopicVerdict {
  bool known = false;
  TopicState state = TopicState::present;
};
[[nodiscard]] TopicVerdict topic_verdict(std::int32_t code);

/// Shape: the same as an Error: unsent → retry, message and topic → quarantine, producer → fatal.
/// `context`: what failed, such as "topic payments, partition 3"; `detail`: the library's own sentence, may
/// be empty.
[[nodiscard]] Error to_error(std::int32_t code, std::string_view context, std::string_view detail = {});

}  // namespace outbox::relay
