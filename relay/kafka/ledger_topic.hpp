#pragma once
// The ledger's topic: there, compacted, and with a partition for each lane; made or widened where the relay
// may. Blocking: for a thread of its own. For the sources of this folder only.

#include <atomic>
#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "relay/kafka/handles.hpp"

namespace outbox::relay {

/// Errors: retry: no final answer within `patience`; fatal: it is not there, or too narrow, or not compacted,
/// and cannot be made so: the advice has the command. Blocks: up to `patience` and some.
[[nodiscard]] Status ensure_ledger_topic(rd_kafka_t* client, const std::string& topic,
                                         std::int32_t partitions, Millis patience,
                                         const std::atomic<bool>& stopping);

}  // namespace outbox::relay
