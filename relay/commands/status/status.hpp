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
#include "relay/postgres/survey_facts.hpp"

namespace outbox::commands {

using relay::Counts;
using relay::holds_shown_max;
using relay::HoldState;
using relay::HorizonHolder;
using relay::LaneState;

/// A living process, with lanes or without.
struct InstanceState {
  std::string name;
  std::int16_t lanes_asked = 0;  ///< by its configuration
  Millis age{};
  Millis renewed_ago{};
  std::string delivery;
  std::string stopped;  ///< why lanes of it cannot send; empty: none stands still
};

struct StatusReport {
  Counts counts;
  std::optional<Millis> oldest;  ///< age of the row that waits longest, of those that could be sent
  std::vector<LaneState> lanes;
  std::int32_t lane_generation = 0;      ///< raised by each other count of lanes
  std::vector<InstanceState> instances;  ///< the oldest first
  std::vector<HoldState> holds;          ///< the oldest, holds_shown_max at most
  std::int64_t holds_total = 0;
  std::optional<HorizonHolder> horizon;  ///< the oldest
  std::string server;

  /// Over all live owners.
  [[nodiscard]] double sent_per_s() const;
};

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
