#pragma once
// What a KafkaBroker is made of: the operator's properties, and the bounds that the relay sets. Plain values.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "relay/core/message/envelope.hpp"
#include "relay/core/message/topic_map.hpp"

namespace outbox::relay {

/// How a missing topic is made.
struct TopicCreation {
  std::int32_t partitions = 0;   ///< 0: as many as the brokers' default says
  std::int32_t replication = 0;  ///< likewise
  std::map<std::string, std::string> configs;
};

struct KafkaOptions {
  /// librdkafka's, by its own names, as they stand under `kafka:`; relay/core/kafka/properties.hpp says which
  /// are refused.
  std::map<std::string, std::string> properties;
  EnvelopeOptions envelope{};
  /// Which topics there are for the relay, and what Kafka calls them.
  TopicMap topics{};
  /// Set: a topic that is missing is made by look_up().
  std::optional<TopicCreation> create{};
  /// Handed to librdkafka and not reported yet: above this, publish() answers queue_full. Bytes are the
  /// caller's to bound, since payloads stay in the caller's memory. 1..10,000,000.
  std::int32_t in_flight_messages_max = 10'000;
  /// No batch is larger, so that it passes every topic's max.message.bytes: a broker refuses batches as a
  /// whole, and innocent neighbours with it. Replaced by a smaller one where look_up() finds a topic that
  /// takes less.
  std::int64_t batch_bytes_max = 1'000'000;
  /// Not empty: the producer is transactional, and a transaction may take so long before the cluster aborts
  /// it: a message that is not delivered by then fails it.
  std::string transactional_id{};
  Millis transaction_timeout{30'000};
  /// How long look_up() waits for the cluster before it answers `retry`.
  Millis look_up_patience{5'000};
  /// librdkafka's log, on the loop's thread. Level as syslog has it: 0 emergency … 7 debug. Nothing goes to
  /// stderr.
  std::function<void(int level, std::string_view facility, std::string_view text)> on_log{};
};

}  // namespace outbox::relay
