#pragma once
// The comparison itself: outbox rows, Kafka's records and what consumers have processed are all walked in the
// order of (topic, partition, offset), so that each is read once and none is kept. What the walk can't place
// is looked up by its id, a few hundred at a time. Blocks; one thread.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "relay/commands/reconcile/account.hpp"
#include "relay/commands/reconcile/consumer_side.hpp"
#include "relay/commands/reconcile/outbox_side.hpp"
#include "relay/kafka/reader.hpp"

namespace outbox::commands {

struct ReconcileOptions {
  std::string source{};                   ///< the pipeline's name: its records carry it as outbox-source
  Millis grace{60'000};                   ///< how long a message may be on its way to a consumer
  bool rows_are_deleted = false;          ///< after_sent: delete
  std::optional<Millis> rows_kept_for{};  ///< after they were sent; nullopt: forever
  Millis patience{30'000};                ///< for Kafka
  /// Whether a topic is compacted; asked only where a record is missing.
  std::function<bool(const std::string& topic)> compacted{};
};

/// Shape: every discrepancy goes to `found` as it is met; the account has how many of each there are.
/// Errors: of either database or of Kafka; what was found before was right.
[[nodiscard]] Result<Account> reconcile(OutboxSide& outbox, std::vector<ConsumerSide>& consumers,
                                        relay::KafkaReader& kafka, const ReconcileOptions& options,
                                        const std::function<void(const Finding&)>& found);

}  // namespace outbox::commands
