#pragma once
// What the parts of one pipeline share: its options, its ports, and the books of what is in flight. Made by
// Pipeline, used by its parts on the loop's thread. A part that changed something calls `stir`, and Pipeline
// looks at all of them once in the next turn.

#include <cstdint>
#include <functional>
#include <string>

#include "relay/core/claim_plan.hpp"
#include "relay/core/flight.hpp"
#include "relay/core/gate.hpp"
#include "relay/log/log.hpp"
#include "relay/ports.hpp"

namespace outbox::relay {

enum class Waking { poll, notify };

struct PipelineOptions {
  std::string name;   ///< goes out as outbox-source
  std::string owner;  ///< of the leases: distinct for each process and start
  Waking waking = Waking::notify;
  ClaimLimits limits;
  AfterSent after_sent = AfterSent::mark;
  OnDead on_dead = OnDead::hold_key;
  HeaderPreset headers = HeaderPreset::plain;
  Millis lease_ttl{5000};
  Millis stop_timeout{10'000};
  Millis careful_for{10'000};         ///< after a refusal: one message a partition, for this long
  Millis facts_fresh_for{120'000};    ///< then a topic's partition count and limit are looked up again
  std::int32_t mark_rows_max = 5000;  ///< of one mark
  std::int32_t marks_max = 2;         ///< under way at once
};

/// Totals since the start, for logs, status and tests.
struct Counters {
  std::int64_t claimed = 0;
  std::int64_t published = 0;
  std::int64_t acked = 0;
  std::int64_t marked = 0;
  std::int64_t dead = 0;
  std::int64_t held = 0;
  std::int64_t dropped = 0;    ///< claimed, and left PENDING for a later claim
  std::int64_t lane_lost = 0;  ///< marks refused because another owner has the lane
};

struct Workbench {
  const PipelineOptions options;
  Loop& loop;
  Source& source;
  Broker& broker;
  log::Logger log;
  std::function<void()> stir;
  Flight flight{};
  Gate gate{};
  ClaimPlan plan{options.limits};
  Counters counters{};

  /// The row stays PENDING and is claimed again later.
  void drop(Row& row) {
    row.stage = Stage::waiting;
    counters.dropped += 1;
    flight.settle(row);
  }
};

}  // namespace outbox::relay
