#pragma once
// librdkafka's messages as records: views into the message, which is kept alive together with its client.

#include "consumer/core/backlog.hpp"
#include "consumer/kafka/handles.hpp"

namespace outbox {

/// A null body, an empty one, null header values and doubled header names stay what they are.
[[nodiscard]] Fetched to_fetched(KafkaClient client, KafkaMessage message);

}  // namespace outbox
