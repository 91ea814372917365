#pragma once
// What the cluster says about a topic, or whether it answers at all. Blocking: for a thread of its own. For
// the sources of this folder only.

#include <atomic>
#include <string>

#include "relay/kafka/handles.hpp"
#include "relay/kafka/options.hpp"
#include "relay/ports/broker.hpp"

namespace outbox::relay {

/// Shape: the topic's facts now; where its max.message.bytes cannot be asked for, the broker's usual default.
/// The question does not create the topic. Errors: retry: no answer within `patience`, or none that is final.
/// Blocks: up to `patience`; up to 1 s once `stopping` is set.
[[nodiscard]] Result<TopicFacts> look_up_topic(rd_kafka_t* client, const std::string& topic, Millis patience,
                                               const std::atomic<bool>& stopping);

/// Makes the topic, and waits until its partitions have leaders; one that is there already is as good.
/// Shape: its facts; missing or forbidden with the cluster's reason where it refuses. Errors: as
/// look_up_topic. Blocks: up to `patience`; up to 1 s once `stopping` is set.
[[nodiscard]] Result<TopicFacts> create_topic(rd_kafka_t* client, const std::string& topic,
                                              const TopicCreation& wanted, Millis patience,
                                              const std::atomic<bool>& stopping);

/// Whether any broker answers. Blocks: up to `patience`.
[[nodiscard]] bool cluster_answers(rd_kafka_t* client, Millis patience);

}  // namespace outbox::relay
