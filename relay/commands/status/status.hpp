#pragma once
// What an outbox looks like now, for `outboxd status`: counts, ages, rate, owners, holds. Reads only, by the
// partial indexes, so it costs the same whether ten rows or fifty million were sent.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "pg/identifier.hpp"
#include "pg/session.hpp"

namespace outbox::commands {

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
  std::string owner;  ///< empty: nobody's
  std::int64_t epoch = 0;
  Millis renewed_ago{};
  Millis remaining{};  ///< negative: the lease has run out
  double sent_per_s = 0;
};

struct HoldState {
  std::string scope;
  std::string topic;
  std::string key;
  std::int32_t partition = -1;
  std::string reason;
  Millis age{};
};

struct StatusReport {
  Counts counts;
  std::optional<Millis> oldest;  ///< age of the row that waits longest, of those that could be sent
  std::vector<LaneState> lanes;
  std::vector<HoldState> holds;  ///< the oldest, holds_shown_max at most
  std::int64_t holds_total = 0;
  std::string server;

  /// Over all live owners.
  [[nodiscard]] double sent_per_s() const;
};

inline constexpr int holds_shown_max = 20;

enum class Counting { cheap, exact };

/// Shape: all of it in one read-only transaction. Blocks. Errors: as pg::Session; 42P01 where the tables are
/// missing. Source: sql/queries/status_*.sql
[[nodiscard]] Result<StatusReport> read_status(pg::Session& session, const pg::TableName& table,
                                               Counting counting);

/// For people; everything from the database is escaped. `name` is the pipeline's.
[[nodiscard]] std::string status_text(const std::string& name, const StatusReport& report);
/// One JSON object, without a line end.
[[nodiscard]] std::string status_json(const std::string& name, const StatusReport& report);

}  // namespace outbox::commands
