#pragma once
// The port Broker on librdkafka: one idempotent producer, acks=all, no message ever times out here. Delivery
// reports, errors and librdkafka's own log arrive by its event queue, which wakes the loop through an
// eventfd; what blocks (topic look-ups, destroying a producer) runs on one thread beside it. Builds and runs
// with librdkafka 2.0.2 and later ones.
//
// Lifecycle: make → start → … → stop → destroyed. Every call and every callback is on the thread that runs
// the io_context, which outlives the broker. A published message's memory is free after its report, or after
// stop().

#include <map>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "relay/kafka/options.hpp"
#include "relay/kafka/statistics.hpp"
#include "relay/ports/broker.hpp"

namespace boost::asio {
class io_context;
}

namespace outbox::relay {

class KafkaBroker final : public Broker {
 public:
  /// Connects in the background; a cluster that is away is no error.
  /// Errors: fatal: a property that is refused or unknown, a bad value, or a librdkafka that the relay
  /// refuses.
  [[nodiscard]] static Result<std::unique_ptr<KafkaBroker>> make(boost::asio::io_context& context,
                                                                 KafkaOptions options);
  ~KafkaBroker() override;

  /// Whether make() would take these properties; nothing is started. Errors: as make()'s.
  [[nodiscard]] static Status check(const KafkaOptions& options);
  /// The version of the library that is loaded, "2.0.2", and what the relay has to say about it.
  [[nodiscard]] static std::string library_version();
  [[nodiscard]] static std::string library_notes();

  /// Other credentials for the same cluster: a producer with these properties takes over once what is in
  /// flight is delivered, so that nothing is sent twice; where that takes more than 10 s, or the cluster is
  /// known to be away, the rest is reported as `unsent`. publish() answers queue_full meanwhile; a report,
  /// perhaps an empty one, comes after that. Errors: fatal: librdkafka cannot work with them (a file is not
  /// there, a key does not fit): the producer that runs stays.
  void renew(std::map<std::string, std::string> properties, DoneStatus done);

  /// Whether the cluster has answered anything since start(), which asks it.
  [[nodiscard]] bool answered() const;
  /// What the producer last said of itself; nullopt: nothing yet, or statistics.interval.ms is 0.
  [[nodiscard]] const std::optional<KafkaStatistics>& statistics() const;

  void start(Events events) override;
  /// Blocks only where messages are in flight: until librdkafka looks at no payload any more, mostly some
  /// milliseconds.
  void stop() override;
  /// Errors: quarantine: a header of the row forges one of the relay's, or no topic can have that name;
  /// fatal: restart(). While the producer is replaced it answers queue_full; a delivery or restart()'s answer
  /// comes after that.
  [[nodiscard]] Result<Accepted> publish(const Outgoing& out) override;
  /// Where the topic takes smaller batches than the producer makes, the answer waits until one that makes
  /// smaller ones is in place: what is in flight is delivered first, or after 10 s reported as `unsent`.
  void look_up(std::string topic, Done<TopicFacts> done) override;
  void purge() override;
  void restart(DoneStatus done) override;

 private:
  struct State;
  explicit KafkaBroker(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace outbox::relay
