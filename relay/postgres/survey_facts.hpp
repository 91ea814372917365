#pragma once
// What an outbox looks like from outside: counts, ages, owners, holds, the dead by reason. For `outboxd
// status`, which asks once, and for the daemon's survey, which asks from time to time. Plain values, and the
// readers of the rows that sql/queries/status_*.sql and survey_*.sql answer.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "pg/rows.hpp"

namespace outbox::relay {

struct Counts {
  std::int64_t pending = 0;    ///< to be sent at once
  std::int64_t due = 0;        ///< scheduled, their time has come
  std::int64_t scheduled = 0;  ///< scheduled for later
  std::int64_t held = 0;
  std::int64_t dead = 0;
  std::int64_t sent = 0;       ///< estimated where `sent_estimated`: with the cancelled and discarded ones
  std::int64_t cancelled = 0;  ///< only in an exact count
  std::int64_t discarded = 0;  ///< only in an exact count
  bool sent_estimated = true;
};

struct LaneState {
  std::int16_t lane = 0;
  std::string owner{};  ///< empty: nobody's
  std::int64_t epoch = 0;
  Millis renewed_ago{};
  Millis remaining{};  ///< negative: the lease has run out
  double sent_per_s = 0;
};

struct HoldState {
  std::string scope{};
  std::string topic{};
  std::string key{};
  std::string reason{};
  Millis age{};
};

struct DeadReason {
  std::string topic{};
  std::string reason{};
  std::int64_t rows = 0;
};

/// Who keeps the server from cleaning dead rows away, and so makes claims read them again.
struct HorizonHolder {
  std::string kind;               ///< session, standby, slot, prepared transaction
  std::string name;               ///< "pid 4711 user app application nightly"
  std::int64_t transactions = 0;  ///< begun since
  std::optional<Millis> open;     ///< where the role may see it
  std::string state;              ///< likewise: "idle in transaction"
};
/// A holder that is open for less is not worth a line.
inline constexpr Millis holder_shown_after{10'000};

inline constexpr int holds_shown_max = 20;

/// Of one survey.
struct SurveyFacts {
  Counts counts{};
  std::optional<Millis> oldest{};  ///< age of the row that waits longest, of those that could be sent
  std::vector<LaneState> lanes{};  ///< of every owner
  std::vector<HoldState> holds{};  ///< the oldest, holds_shown_max at most
  std::int64_t holds_total = 0;
  std::vector<DeadReason> dead{};            ///< the most frequent of the newest dead
  std::optional<Millis> partitions_ahead{};  ///< none: the table is not partitioned by day
  std::int64_t default_partition_bytes = 0;
  std::int64_t xmin_age = 0;               ///< transactions; of what this role may see
  double notify_queue = 0;                 ///< how full the server's queue of notifications is: 0 to 1
  std::optional<HorizonHolder> horizon{};  ///< the oldest
};

/// The last survey that was answered, and how surveying goes.
struct SurveyFigures {
  std::optional<MonoTime> taken_at{};
  Micros took{};
  std::int64_t failed = 0;
  std::string error{};  ///< of the last one, if it failed
  SurveyFacts facts{};
};

void read_counts(const pg::Rows& rows, Counts& counts, std::optional<Millis>& oldest);
[[nodiscard]] std::vector<LaneState> read_lanes(const pg::Rows& rows);
/// `total`: how many holds there are.
[[nodiscard]] std::vector<HoldState> read_holds(const pg::Rows& rows, std::int64_t& total);
[[nodiscard]] std::vector<DeadReason> read_dead_reasons(const pg::Rows& rows);
[[nodiscard]] std::optional<HorizonHolder> read_horizon(const pg::Rows& rows);
void read_storage(const pg::Rows& rows, SurveyFacts& facts);

}  // namespace outbox::relay
