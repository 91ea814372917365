#include "relay/postgres/survey_facts.hpp"

#include <algorithm>
#include <cstdlib>

namespace outbox::relay {

void read_counts(const pg::Rows& rows, Counts& counts, std::optional<Millis>& oldest) {
  counts.pending = rows.integer(0, 0);
  counts.due = rows.integer(0, 1);
  counts.scheduled = rows.integer(0, 2);
  counts.held = rows.integer(0, 3);
  counts.dead = rows.integer(0, 4);
  if (!rows.is_null(0, 5)) oldest = Millis{std::max<std::int64_t>(0, rows.integer(0, 5))};
}

std::vector<LaneState> read_lanes(const pg::Rows& rows) {
  std::vector<LaneState> out;
  for (int i = 0; i < rows.size(); ++i) {
    out.push_back({static_cast<std::int16_t>(rows.integer(i, 0)), std::string(rows.text(i, 1)),
                   rows.integer(i, 2), Millis{rows.integer(i, 3)}, Millis{rows.integer(i, 4)},
                   std::strtod(std::string(rows.text(i, 5)).c_str(), nullptr)});
  }
  return out;
}

std::vector<HoldState> read_holds(const pg::Rows& rows, std::int64_t& total) {
  std::vector<HoldState> out;
  for (int i = 0; i < rows.size(); ++i) {
    out.push_back({std::string(rows.text(i, 0)), std::string(rows.text(i, 1)), std::string(rows.text(i, 2)),
                   std::string(rows.text(i, 3)), Millis{rows.integer(i, 4)}});
    total = rows.integer(i, 5);
  }
  return out;
}

std::vector<DeadReason> read_dead_reasons(const pg::Rows& rows) {
  std::vector<DeadReason> out;
  for (int i = 0; i < rows.size(); ++i)
    out.push_back({std::string(rows.text(i, 0)), std::string(rows.text(i, 1)), rows.integer(i, 2)});
  return out;
}

std::optional<HorizonHolder> read_horizon(const pg::Rows& rows) {
  if (rows.empty()) return std::nullopt;
  HorizonHolder holder{std::string{rows.text(0, 0)},
                       std::string{rows.text(0, 1)},
                       rows.integer(0, 2),
                       {},
                       std::string{rows.text(0, 4)}};
  if (!rows.is_null(0, 3)) holder.open = Millis{rows.integer(0, 3)};
  return holder;
}

void read_storage(const pg::Rows& rows, SurveyFacts& facts) {
  if (!rows.is_null(0, 0)) facts.partitions_ahead = Millis{rows.integer(0, 0)};
  facts.default_partition_bytes = rows.integer(0, 1);
  facts.xmin_age = rows.integer(0, 2);
  facts.notify_queue = static_cast<double>(rows.integer(0, 3)) / 1e6;
}

}  // namespace outbox::relay
