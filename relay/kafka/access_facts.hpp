#pragma once
// What a cluster says of who may write and read its topics, for `outboxd check`. For the sources of this
// folder only.

#include "relay/kafka/cluster_facts.hpp"
#include "relay/kafka/handles.hpp"

namespace outbox::relay {

/// ClusterFacts::access. Blocks, up to `wait_ms` and half a second.
[[nodiscard]] std::optional<std::vector<AccessRule>> read_access_rules(rd_kafka_t* client, int wait_ms);

}  // namespace outbox::relay
