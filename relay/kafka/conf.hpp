#pragma once
// From options to a librdkafka configuration. For the sources of this folder only.

#include "base/result.hpp"
#include "relay/kafka/handles.hpp"
#include "relay/kafka/options.hpp"

namespace outbox::relay {

/// Shape: the relay's defaults, then the operator's properties, then what the promise hangs on.
/// Errors: fatal: a property is refused, unknown, or has a value that librdkafka does not take; all of them
/// are named.
[[nodiscard]] Result<KafkaConf> make_kafka_conf(const KafkaOptions& options);

/// Errors: fatal: the loaded librdkafka is one that the relay refuses, see relay/core/kafka/version.hpp.
[[nodiscard]] Status check_kafka_version();

}  // namespace outbox::relay
