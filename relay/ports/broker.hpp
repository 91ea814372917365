#pragma once
// Kafka, seen by one idempotent producer. Adapter: relay/kafka, stand-in: tests/support/fakes; one contract
// suite (tests/contract/broker_contract.hpp) runs over both. Thread and answers: relay/ports/loop.hpp.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "relay/core/types.hpp"
#include "relay/ports/loop.hpp"

namespace outbox::relay {

using Token = std::uint64_t;  ///< names a published message in its delivery report

struct Outgoing {
  const Message* message = nullptr;  ///< its memory must outlive the delivery report
  Partition partition;
  Token token = 0;
};

enum class Accepted { queued, queue_full };

struct Delivery {
  Token token = 0;
  Partition partition;
  Offset offset;
  std::optional<Refusal> refusal;  ///< nullopt: Kafka has it, acks=all
  std::string reason;              ///< why refused
  bool answered = false;           ///< with `unsent`: the cluster itself answered so, about this very message
};

struct TopicFacts {
  TopicState state = TopicState::present;
  std::int32_t partitions = 0;
  std::int64_t message_bytes_max =
      1'048'588;       ///< the topic's max.message.bytes, or the broker's default where unknown
  std::string reason;  ///< for missing and forbidden; for present: why its limit is only assumed
};

/// Kafka, seen by one idempotent producer.
class Broker {
 public:
  struct Events {
    std::function<void(std::span<const Delivery>)> on_delivered;  ///< in the order of each partition
    std::function<void(LinkState, const std::string&)> on_link;   ///< changes only
    std::function<void(const Error&)> on_fatal;  ///< the producer is finished: call restart()
  };
  virtual ~Broker() = default;
  virtual void start(Events events) = 0;
  /// Waits for nothing: what is in flight is purged without a report.
  virtual void stop() = 0;

  /// Errors: quarantine: this message can never be sent (its topic's name is no topic name …); fatal:
  /// producer finished.
  [[nodiscard]] virtual Result<Accepted> publish(const Outgoing& out) = 0;
  /// Shape: the topic's facts as the cluster has them now. Errors: retry: no answer from the cluster.
  virtual void look_up(std::string topic, Done<TopicFacts> done) = 0;
  /// Drops what is queued or in flight; each message is reported, refused as `unsent`. It does not wait for
  /// it: what is published right after may be dropped and reported as well.
  virtual void purge() = 0;
  /// A new producer in place of a finished one; what the old one had is reported first, refused as `unsent`.
  virtual void restart(DoneStatus done) = 0;
};

}  // namespace outbox::relay
