#pragma once
// Owners of librdkafka's handles, for the test clients in this folder.

#include <librdkafka/rdkafka.h>

#include <map>
#include <memory>
#include <string>

namespace outbox::test {

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* handle) const noexcept {
    destroy(handle);
  }
};
template <class T, auto destroy>
using Owned = std::unique_ptr<T, Destroy<destroy>>;

using Client = Owned<rd_kafka_t, rd_kafka_destroy>;
using Queue = Owned<rd_kafka_queue_t, rd_kafka_queue_destroy>;
using Event = Owned<rd_kafka_event_t, rd_kafka_event_destroy>;
using PartitionList = Owned<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>;
using Record = Owned<rd_kafka_message_t, rd_kafka_message_destroy>;
using Metadata = Owned<const rd_kafka_metadata_t, rd_kafka_metadata_destroy>;
using NewTopic = Owned<rd_kafka_NewTopic_t, rd_kafka_NewTopic_destroy>;
using NewPartitions = Owned<rd_kafka_NewPartitions_t, rd_kafka_NewPartitions_destroy>;
using DeleteTopic = Owned<rd_kafka_DeleteTopic_t, rd_kafka_DeleteTopic_destroy>;

/// Errors: std::runtime_error with librdkafka's own text.
Client make_client(rd_kafka_type_t type, const std::map<std::string, std::string>& properties);

/// How many partitions of `topic` have a leader; 0 where it does not exist. Blocks up to 10 s.
int partitions_with_leader(rd_kafka_t* client, const std::string& topic);
/// Blocks until that number is `partitions`, or exactly 0 where so asked. Errors: std::runtime_error after 30
/// s.
void await_partitions(rd_kafka_t* client, const std::string& topic, int partitions);

}  // namespace outbox::test
