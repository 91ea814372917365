#pragma once
// Kafka, seen by the transactional producers of lanes (`delivery: exactly_once`). One call is one whole Kafka
// transaction, and it ends in one of two ways: committed for certain, or not known. After the second only
// open() tells, which fences whoever had the lane's transactional id (also a request of our own that is still
// on its way) and reads what its ledger says last. Adapter: relay/kafka/transactor.hpp, stand-in:
// tests/support/fakes; one contract suite runs over both.
//
// Thread and answers as for the other ports (relay/ports/loop.hpp). Calls for different lanes run side
// by side, those of one lane one at a time.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "relay/core/lanes/ledger.hpp"
#include "relay/ports/broker.hpp"

namespace outbox::relay {

struct OpenRequest {
  Uuid ledger;
  LedgerLane ledger_lane;
  std::int16_t lanes = 1;            ///< of the lane's generation: so many partitions the ledger needs
  std::int64_t batch_bytes_max = 0;  ///< no batch is larger: below each used topic's max.message.bytes
};

struct RefusedMessage {
  std::size_t index = 0;  ///< in the transaction
  Refusal refusal = Refusal::unsent;
  std::string reason;
};

/// How a transaction ended.
struct TransactionEnd {
  bool committed = false;       ///< false: it may be or not; open() tells
  std::vector<Offset> offsets;  ///< committed: of each message, in their order
  std::vector<RefusedMessage>
      refused;                 ///< not committed: messages that Kafka refused as `message` or `topic`
  std::optional<Error> error;  ///< not committed: why
};

class Transactor {
 public:
  using Ended = std::function<void(TransactionEnd)>;
  virtual ~Transactor() = default;

  /// Shape: a new producer has the lane, every other that ever had it is fenced, and its transactions
  /// are decided; the answer is what the last committed one carried (empty: there was none). What was open
  /// before is closed. Errors: retry: no answer from the cluster in time (never "nothing there"); fatal: the
  /// ledger's topic is missing and cannot be made, is unfit, or belongs to another outbox.
  virtual void open(OpenRequest request, Done<std::vector<LedgerRow>> done) = 0;
  /// One transaction: the messages, and the ledger's record of them. Only for a lane that open()
  /// answered, and not again after an end that was not committed. The messages' memory must live until the
  /// answer.
  virtual void send(LedgerLane ledger_lane, std::vector<Outgoing> messages, Ended ended) = 0;
  /// A send under way ends soon, not committed unless it just was.
  virtual void abandon(LedgerLane ledger_lane) = 0;
  /// The lane's producer ends. Not while a send is under way.
  virtual void close(LedgerLane ledger_lane) = 0;
  /// Waits until no payload is looked at any more. No answer comes after it.
  virtual void stop() = 0;
};

}  // namespace outbox::relay
