#pragma once
// What the parts of one pipeline share: its options, its ports, and the books of what is in flight. Made by
// Pipeline, used by its parts on the loop's thread. A part that changed something calls `schedule_turn`, and
// Pipeline looks at all of them once in the next turn.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "relay/core/claim/blocklist.hpp"
#include "relay/core/claim/claim_floors.hpp"
#include "relay/core/claim/claim_plan.hpp"
#include "relay/core/claim/flight.hpp"
#include "relay/log/log.hpp"
#include "relay/ports/broker.hpp"
#include "relay/ports/loop.hpp"
#include "relay/ports/source.hpp"
#include "relay/shell/figures.hpp"

namespace outbox::relay {

enum class Waking { poll, notify };

struct PipelineOptions {
  std::string name;   ///< goes out as outbox-source
  std::string owner;  ///< of the leases, the instance's name: distinct for each process and start
  Waking waking = Waking::notify;
  ClaimLimits limits;
  AfterSent after_sent = AfterSent::mark;
  OnDead on_dead = OnDead::hold_key;
  HeaderPreset headers = HeaderPreset::plain;
  std::int32_t max_attempts = 0;   ///< refusals of a message that may pass, until it is dead; 0: no limit
  std::string partition_header{};  ///< of a row; names its partition; empty: none
  Millis lease_ttl{5000};
  Millis stop_timeout{10'000};        ///< also how long lanes of a surplus may take to drain
  Millis careful_for{10'000};         ///< after a refusal: one message a partition, for this long
  Millis slow_look{5};                ///< a flat look that takes longer has claims go by the floors
  Millis facts_fresh_for{120'000};    ///< then a topic's partition count and limit are looked up again
  Millis away_after{500};             ///< a partition that owes reports and gives none for so long is away
  std::int32_t published_max = 5000;  ///< handed to the producer at once, but for what is away
  std::int32_t deferred_rows_max = 100'000;  ///< of partitions that are away; then the others wait as well
  std::int32_t mark_rows_max = 5000;         ///< of one mark
  std::int32_t marks_max = 2;                ///< under way at once
  Millis transaction_slow{5000};             ///< exactly once: a transaction that takes longer is told
  Millis transactor_lost{180'000};           ///< a call to the transactor ends long before; then it is stuck
  std::size_t topics_max = 1000;  ///< remembered for good; more only while they have something to do
  std::int32_t probes_max = 8;    ///< of held topics, under way at once
};

struct Workbench {
  const PipelineOptions options;
  Loop& loop;
  Source& source;
  Broker& broker;
  log::Logger log;
  std::function<void()> schedule_turn;
  std::function<void()> doubt_leases;  ///< a lane seems to have another owner: ask
  Flight flight{};
  Blocklist blocklist{};
  ClaimPlan plan{options.limits};
  ClaimFloors floors{options.slow_look};
  Counters counters{};
  Timings timings{};
  Health health{};
  std::uint64_t lease_requests = 0;  ///< asked so far
  bool alone = true;                 ///< no other instance is alive, as far as is known

  /// The row stays PENDING and is claimed again later.
  void drop(Row& row) {
    row.stage = Stage::waiting;
    counters.dropped += 1;
    unsent(row.message);
    flight.settle(row);
    if (flight.rows() == 0) health.owing.reset();
  }
  /// Rows that `named_by` names, and whose ids are other rows' by now: those were left alone.
  void note_replaced(std::int64_t rows, std::string_view named_by) {
    counters.replaced += rows;
    log.warn("rows_replaced",
             {{"rows", rows},
              {"named_by", named_by},
              {"cause",
               "the database went back in time (a failover to a standby that lagged, a restore), or its "
               "sequence began again"},
              {"next", "the rows that have these ids now are sent as any other"}});
  }
  /// Rows were settled for good: marked, buried or held.
  void note_progress() { health.settled(loop.now(), flight.rows()); }
  /// The row may be PENDING although it leaves the flight: claims look for it again.
  void unsent(const Message& message) {
    if (!message.available_at) floors.lower_to(message.shard, message.id);
  }
};

/// Microseconds from `since` to `until`.
[[nodiscard]] inline Micros took(MonoTime since, MonoTime until) {
  return std::chrono::duration_cast<Micros>(until - since);
}

}  // namespace outbox::relay
