#pragma once
// Where a message goes: the partition that Kafka's Java client would choose for its key, over a partition
// count that the caller pins. The relay computes it itself, since librdkafka would take a changed count over
// at its own refresh, with earlier messages of the key still on their way, and since its default hash sends
// keys elsewhere than Java does. Pure; any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "relay/core/types.hpp"

namespace outbox::relay {

/// Shape: the 32-bit murmur2 hash with the seed of Kafka's Java client.
/// Source: org.apache.kafka.common.utils.Utils.murmur2
[[nodiscard]] std::uint32_t murmur2(std::string_view bytes);

/// Shape: toPositive(murmur2(key)) % partitions, for the empty key too. `partitions` is at least 1.
[[nodiscard]] Partition partition_of_key(std::string_view key, std::int32_t partitions);

/// What a row says about its partition itself: in its column (Message::partition), else in the header `name`.
struct PartitionAsked {
  std::optional<Partition> partition;  ///< 0 .. partitions-1
  std::string fault;                   ///< not empty: what it says is no such number
};
[[nodiscard]] PartitionAsked partition_asked(const Message& message, std::string_view name,
                                             std::int32_t partitions);

/// Shape: by its key; without one by its msg_id, hashed the same way. A null key asks for no order, only to
/// be spread. The id spreads as evenly as a turn-taking counter would, needs no state, and sends a repeated
/// message to the partition of its first copy, where one consumer sees both, side by side.
[[nodiscard]] Partition partition_of(const Message& message, std::int32_t partitions);

}  // namespace outbox::relay
