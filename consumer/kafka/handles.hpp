#pragma once
// Owners of librdkafka's handles.

#include <librdkafka/rdkafka.h>

#include <memory>

namespace outbox {

template <auto destroy>
struct DestroyHandle {
  template <class T>
  void operator()(T* handle) const noexcept {
    destroy(handle);
  }
};
using KafkaConf = std::unique_ptr<rd_kafka_conf_t, DestroyHandle<rd_kafka_conf_destroy>>;
using KafkaList =
    std::unique_ptr<rd_kafka_topic_partition_list_t, DestroyHandle<rd_kafka_topic_partition_list_destroy>>;
using KafkaQueue = std::unique_ptr<rd_kafka_queue_t, DestroyHandle<rd_kafka_queue_destroy>>;
using KafkaEvent = std::unique_ptr<rd_kafka_event_t, DestroyHandle<rd_kafka_event_destroy>>;
using KafkaMetadata = std::unique_ptr<const rd_kafka_metadata_t, DestroyHandle<rd_kafka_metadata_destroy>>;
using KafkaTopic = std::unique_ptr<rd_kafka_topic_t, DestroyHandle<rd_kafka_topic_destroy>>;
using KafkaMessage = std::unique_ptr<rd_kafka_message_t, DestroyHandle<rd_kafka_message_destroy>>;
/// Shared: a message must not outlive its client.
using KafkaClient = std::shared_ptr<rd_kafka_t>;

}  // namespace outbox
