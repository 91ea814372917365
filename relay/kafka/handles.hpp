#pragma once
// Owners of librdkafka's handles: destroyed with their scope. For the sources of this folder only.

#include <librdkafka/rdkafka.h>

#include <memory>

namespace outbox::relay {

template <auto destroy>
struct KafkaDestroy {
  template <class T>
  void operator()(T* handle) const noexcept {
    destroy(handle);
  }
};
template <class T, auto destroy>
using KafkaOwned = std::unique_ptr<T, KafkaDestroy<destroy>>;

using KafkaClient = KafkaOwned<rd_kafka_t, rd_kafka_destroy>;
using KafkaConf = KafkaOwned<rd_kafka_conf_t, rd_kafka_conf_destroy>;
using KafkaQueue = KafkaOwned<rd_kafka_queue_t, rd_kafka_queue_destroy>;
using KafkaEvent = KafkaOwned<rd_kafka_event_t, rd_kafka_event_destroy>;
using KafkaTopic = KafkaOwned<rd_kafka_topic_t, rd_kafka_topic_destroy>;
using KafkaHeaders = KafkaOwned<rd_kafka_headers_t, rd_kafka_headers_destroy>;
using KafkaFailure = KafkaOwned<rd_kafka_error_t, rd_kafka_error_destroy>;
using KafkaMetadata = KafkaOwned<const rd_kafka_metadata_t, rd_kafka_metadata_destroy>;
using KafkaResource = KafkaOwned<rd_kafka_ConfigResource_t, rd_kafka_ConfigResource_destroy>;
using KafkaNewTopic = KafkaOwned<rd_kafka_NewTopic_t, rd_kafka_NewTopic_destroy>;
using KafkaAccessFilter = KafkaOwned<rd_kafka_AclBindingFilter_t, rd_kafka_AclBinding_destroy>;
using KafkaAdminOptions = KafkaOwned<rd_kafka_AdminOptions_t, rd_kafka_AdminOptions_destroy>;

}  // namespace outbox::relay
