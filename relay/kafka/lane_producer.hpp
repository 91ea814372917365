#pragma once
// One lane's transactional producer, as calls that block: made again and initialised (which fences every
// other), then one whole transaction a call. Its only clean end is a clean commit: whatever else happens, the
// producer is thrown away, and the next one's initialisation decides what became of the transaction. So
// librdkafka is never asked to go on after an error. For the sources of this folder only; one thread at a
// time.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "relay/kafka/producer.hpp"
#include "relay/ports/transactor.hpp"

namespace outbox::relay {

struct LaneProducerOptions {
  KafkaOptions kafka;  ///< transactional_id is set here
  std::string pipeline;
  std::string ledger_topic;
  Millis patience{10'000};  ///< of an open, and of a commit
};

class LaneProducer {
 public:
  /// Errors: as Transactor::open. Blocks: up to a few times `patience`; up to `patience` once `stopping` is
  /// set.
  [[nodiscard]] static Result<std::unique_ptr<LaneProducer>> open(const LaneProducerOptions& options,
                                                                  const OpenRequest& request,
                                                                  const std::atomic<bool>& stopping);

  /// What the last committed transaction carried, when it was opened.
  [[nodiscard]] std::vector<LedgerRow> take_rows() { return std::move(rows_); }

  /// Blocks: up to transaction.timeout.ms and `patience`; once `give_up` is set, as long as a commit takes.
  /// After an end that is not committed no payload is looked at any more, and the lane is of no use.
  [[nodiscard]] TransactionEnd send(const std::vector<Outgoing>& messages, const std::atomic<bool>& give_up);

 private:
  LaneProducer(const LaneProducerOptions& options, const OpenRequest& request);
  Status initialise(const std::atomic<bool>& stopping);
  Status run(const std::vector<Outgoing>& messages, TransactionEnd& end, const std::atomic<bool>& give_up);
  // Names the messages of the topic that the whole transaction was refused for, if that was why.
  void trace(const std::vector<Outgoing>& messages, TransactionEnd& end, const std::atomic<bool>& give_up);
  enum class Trial { taken, refused, unclear };
  // A transaction of these messages that is never committed.
  Trial try_out(const std::vector<Outgoing>& messages, std::span<const std::size_t> which,
                const std::atomic<bool>& give_up);
  std::optional<Error> refusal() const;
  Status produce(const Outgoing& out, std::string_view topic, std::span<const Header> headers);
  Status await_reports(const std::atomic<bool>& give_up);
  Status write_ledger(const std::vector<Outgoing>& messages, const TransactionEnd& end,
                      const std::atomic<bool>& give_up);
  Status commit();
  void take(rd_kafka_event_t* event);

  LaneProducerOptions options_;
  OpenRequest request_;
  Envelope envelope_;
  std::shared_ptr<KafkaProducer> producer_;
  std::vector<LedgerRow> rows_;
  std::vector<Delivery> deliveries_;
  std::optional<Error> fatal_;
  MonoTime deadline_{};  // of the transaction under way
};

}  // namespace outbox::relay
