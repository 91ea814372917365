#pragma once
// Rows that wait to be handed to Kafka, topic by topic, in order. Shared by the two ways of sending them:
// Publisher (at least once) and Transactions (exactly once).

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "relay/core/message/envelope.hpp"
#include "relay/shell/settler.hpp"
#include "relay/shell/topics.hpp"
#include "relay/shell/workbench.hpp"

namespace outbox::relay {

class Queues {
 public:
  Queues(Workbench& bench, Topics& topics, Settler& settler)
      : bench_(bench),
        topics_(topics),
        settler_(settler),
        envelope_({.preset = bench.options.headers, .source = bench.options.name}) {}

  /// Takes a claimed row on: queued, held, or left for a later claim. True if queued.
  bool take(Row& row);
  /// A row that Kafka has not taken waits again, in its place.
  void again(Topic& topic, Row& row);
  /// The one that the row names, else its key's.
  [[nodiscard]] Partition partition_of(const Topic& topic, const Row& row) const;
  /// Why Kafka would refuse the row; empty: it fits.
  [[nodiscard]] std::string unfit(const Topic& topic, const Row& row) const;
  /// The row becomes DEAD; what waits of its key is left for after its hold.
  void kill(Topic& topic, Row& row, std::string reason);
  /// A row that was taken out of its topic's queue is left for later claims, and out of them until
  /// bring_back().
  void defer(Topic& topic, Row& row, Partition partition);
  /// Whether another row may be set aside. Where it may not, that is said once, and shown until there is
  /// room.
  [[nodiscard]] bool deferred_room();
  /// What was set aside may be claimed again, and how much that was. Claimed again in order: so nothing
  /// passes it that waits already, or that a claim under way brings.
  std::int64_t bring_back(Topic& topic, Partition partition);
  /// What waits of the topic is left for later claims, and nothing passes it that a claim under way brings.
  void leave(Topic& topic);
  /// Everything not handed to Kafka yet stays PENDING for a later claim.
  void drop();
  void drop(const LaneSet& lanes);

 private:
  [[nodiscard]] bool closed_out(const Topic& topic, const Row& row) const;
  template <class Chosen>
  void drop(Topic& topic, Chosen chosen);
  void include(const std::vector<Deferred>& rows);

  Workbench& bench_;
  Topics& topics_;
  Settler& settler_;
  Envelope envelope_;  // for sizes only; the broker has its own
};

}  // namespace outbox::relay
