#pragma once
// Where newly assigned partitions start: at what the group committed, else as core/start.hpp decides.

#include <functional>
#include <map>
#include <string>

#include "base/result.hpp"
#include "consumer/core/backlog.hpp"
#include "consumer/kafka/handles.hpp"
#include "outbox/consumer.hpp"

namespace outbox {

/// By topic: how many partitions it had when the group met it first; goes into every commit.
using BornCounts = std::map<std::string, std::int32_t>;

struct StartRule {
  StartAt start_at;                                         ///< of a new group
  const std::map<PartitionId, std::int64_t>& of_partition;  ///< known elsewhere: before all else
  const std::function<bool()>& stopping;
  /// Remembers that a partition starts at an offset, and answers where it was started before.
  const std::function<Result<std::int64_t>(const PartitionId&, std::int64_t)>& remember;
};

/// Fills in the offset of every partition of `assigned`, and `born` for their topics. A start at the end is
/// remembered and committed, so that it stays where it was decided, also once Kafka has forgotten the group.
/// Errors: retry: the cluster did not answer in time; fatal: it refused. Blocks: up to a minute; once `stopping`, for the request under way (5 s), and fails.
[[nodiscard]] Status set_starts(rd_kafka_t* client, rd_kafka_topic_partition_list_t* assigned,
                                const StartRule& rule, BornCounts& born);

/// rd_kafka_commit() would wait forever where the group's coordinator is away, and so would a stop. Errors:
/// RD_KAFKA_RESP_ERR__TIMED_OUT without an answer within 5 s.
[[nodiscard]] rd_kafka_resp_err_t commit_and_wait(rd_kafka_t* client,
                                                  const rd_kafka_topic_partition_list_t* offsets);

/// Metadata is copied into the element, which owns it.
void set_metadata(rd_kafka_topic_partition_t& element, const std::string& metadata);

}  // namespace outbox
