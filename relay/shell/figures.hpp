#pragma once
// What a pipeline tells about itself: totals and times since its start, and how it stands now. The totals are
// plain numbers that the pipeline's parts write as they work; Pipeline::figures() copies them with the rest.
// Thread: the loop's, writer and reader alike, so nothing here is atomic.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "relay/core/health/histogram.hpp"
#include "relay/core/health/progress.hpp"
#include "relay/core/types.hpp"

namespace outbox::relay {

/// Totals since the start, for logs, status, metrics and tests.
struct Counters {
  std::int64_t claimed = 0;
  std::int64_t published = 0;
  std::int64_t acked = 0;
  std::int64_t marked = 0;
  std::int64_t dead = 0;
  std::int64_t held = 0;
  std::int64_t dropped = 0;    ///< claimed, and left PENDING for a later claim
  std::int64_t lane_lost = 0;  ///< marks refused because another owner has the lane
  std::int64_t replaced = 0;   ///< rows to be marked whose ids are other rows' by now
  std::int64_t claims = 0;     ///< statements, answered or not
  std::int64_t claims_failed = 0;
  std::int64_t due_locked = 0;  ///< due rows that a claim found locked by others, each time
  std::int64_t marks = 0;       ///< statements, answered or not
  std::int64_t marks_failed = 0;
  std::int64_t hints = 0;
  std::int64_t lanes_taken = 0;          ///< times that lanes were taken
  std::int64_t lanes_lost = 0;           ///< times that they were lost, not given back
  std::int64_t producers = 0;            ///< made in place of a finished one
  std::int64_t transactions = 0;         ///< exactly once: committed
  std::int64_t transactions_failed = 0;  ///< ended unclearly; the ledger told what became of them
  std::int64_t lane_producers_opened =
      0;  ///< transactional producers made, for a lane taken or after a failure
};

struct Timings {
  Histogram claim;           ///< a claim, asked to answered
  Histogram mark;            ///< a mark, asked to answered
  Histogram claim_to_ack;    ///< a row, claimed to acknowledged by Kafka
  Histogram created_to_ack;  ///< a row, created (or due) to acknowledged, by two machines' clocks
};

/// Of one topic since the start.
struct TopicCounters {
  std::int64_t published = 0;
  std::int64_t acked = 0;
  std::int64_t dead = 0;
};

/// The name under which topics beyond the cap are told together; no Kafka topic can be called so.
inline constexpr std::string_view other_topics = "(others)";

struct TopicFigures {
  std::string_view name{};
  std::string_view state{};
  TopicCounters counters{};
  std::int32_t partitions = 0;
  std::int64_t waiting = 0;
  std::int64_t in_flight = 0;
  std::int64_t partitions_away = 0;  ///< that owe reports and give none
  bool held = false;
  bool careful = false;  ///< one message a partition in flight, after a refusal
};

/// A lane that cannot send (`delivery: exactly_once`).
struct StoppedLane {
  LaneId lane;
  Millis since{};     ///< how long ago it last made progress
  std::string why{};  ///< one line
};

/// Its views live as long as the pipeline.
struct Figures {
  std::string_view phase{};
  Counters counters{};
  const Timings* timings = nullptr;
  Health health{};
  Judgement judgement{};
  std::int64_t flight_rows = 0;
  std::int64_t flight_bytes = 0;
  bool asleep = false;
  std::vector<Lease> lanes{};  ///< held by this process
  std::optional<Millis> lease_left{};
  std::vector<TopicFigures> topics{};
  bool transactional = false;          ///< `delivery: exactly_once`
  std::vector<StoppedLane> stopped{};  ///< of the lanes held
};

}  // namespace outbox::relay
