#pragma once
// One idempotent producer: librdkafka's handle, its topics, and a register of what was handed to it and is
// not reported yet, so that nothing can get lost with it. For the sources of this folder only.
//
// Lifecycle: make → produce, poll … → (purge) → destroyed. One thread at a time; ownership may move to
// another thread. Destruction blocks: it purges and joins librdkafka's threads, and after it no payload is
// looked at any more.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "relay/kafka/handles.hpp"
#include "relay/kafka/options.hpp"
#include "relay/ports/broker.hpp"

namespace outbox::relay {

inline constexpr int no_wake_fd = -1;  ///< for a thread that polls

class KafkaProducer {
 public:
  /// `wake_fd`: an eventfd that becomes readable when the queue of events is no longer empty.
  /// Errors: fatal: the configuration or the version is refused.
  [[nodiscard]] static Result<std::shared_ptr<KafkaProducer>> make(const KafkaOptions& options, int wake_fd);
  ~KafkaProducer();
  KafkaProducer(const KafkaProducer&) = delete;
  KafkaProducer& operator=(const KafkaProducer&) = delete;

  /// `topic`: as Kafka calls it. Shape: NO_ERROR: it will be reported by an event, and key and headers were
  /// copied, the body was not. Anything else: nothing was taken.
  [[nodiscard]] rd_kafka_resp_err_t produce(const Outgoing& out, std::string_view topic,
                                            std::span<const Header> headers);

  /// The next event, or null. Waits up to `patience`.
  [[nodiscard]] KafkaEvent poll(Millis patience = Millis{0});
  /// Shape: appends a Delivery for each message of a delivery report, and forgets them.
  void take_deliveries(rd_kafka_event_t* event, std::vector<Delivery>& deliveries);

  /// Drops what is queued and in flight; each message is reported by an event soon.
  void purge();
  /// No event wakes anybody any more; for the thread that takes the producer over.
  void silence();
  /// How many messages are not reported yet.
  [[nodiscard]] std::size_t outstanding() const { return outstanding_; }
  /// Shape: appends a Delivery, refused as `unsent`, for each message that is not reported, and forgets them.
  void give_up(std::vector<Delivery>& deliveries, const std::string& reason);
  /// The last that it has to say: purges, and waits 2 s for reports. Shape: what was acknowledged before or
  /// during the purge is a delivery, the rest is refused as `unsent`. They may be told only when the producer
  /// is gone, since until then it looks at the payloads.
  [[nodiscard]] std::vector<Delivery> retire();

  [[nodiscard]] rd_kafka_t* handle() const { return client_.get(); }

 private:
  struct Slot {
    Token token = 0;
    Partition partition;
    bool used = false;
  };

  explicit KafkaProducer(KafkaClient client);
  rd_kafka_topic_t* topic(std::string_view name);
  std::uint32_t take_slot(const Outgoing& out);
  Slot leave_slot(const void* opaque);

  KafkaClient client_;
  KafkaQueue queue_;
  std::map<std::string, KafkaTopic, std::less<>> topics_;
  rd_kafka_topic_t* last_topic_ = nullptr;  // most messages go where the one before went
  std::string last_name_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t outstanding_ = 0;
};

}  // namespace outbox::relay
