#include <cstdlib>
#include <map>

#include "relay/commands/status/status.hpp"
#include "sql/queries/operator.hpp"

namespace outbox::commands {
namespace {

namespace queries = sql::queries;
using pg::Rows;

class Reader {
 public:
  Reader(pg::Session& session, const pg::TableName& table)
      : session_(session), table_(table), source_(table.schema + "." + table.table) {}

  Status settings(StatusReport& report) {
    return one(queries::status_settings, {}, [&](const Rows& r) { report.server = r.text(0, 3); });
  }

  Status counts(StatusReport& report) {
    return one(on_table(queries::status_counts), {},
               [&](const Rows& r) { relay::read_counts(r, report.counts, report.oldest); });
  }

  Status sent_estimate(Counts& counts) {
    pg::Params params;
    params.text(table_.quoted());
    return one(queries::status_rows_estimate, params, [&](const Rows& r) {
      const auto unsent = counts.pending + counts.due + counts.scheduled + counts.held + counts.dead;
      counts.sent = std::max<std::int64_t>(0, r.integer(0, 0) - unsent);
    });
  }

  Status sent_exact(Counts& counts) {
    return one(on_table(queries::status_exact), {}, [&](const Rows& r) {
      counts.sent = r.integer(0, 0);
      counts.cancelled = r.integer(0, 1);
      counts.discarded = r.integer(0, 2);
      counts.sent_estimated = false;
    });
  }

  Status lanes(StatusReport& report) {
    pg::Params params;
    params.text(source_);
    return one(in_schema(queries::status_lanes), params, [&](const Rows& r) {
      report.lanes = relay::read_lanes(r);
      if (!r.empty()) report.lane_generation = static_cast<std::int32_t>(r.integer(0, 6));
    });
  }

  Status instances(StatusReport& report) {
    pg::Params params;
    params.text(source_);
    return one(in_schema(queries::status_instances), params, [&](const Rows& r) {
      for (int i = 0; i < r.size(); ++i) {
        report.instances.push_back({std::string(r.text(i, 0)), static_cast<std::int16_t>(r.integer(i, 1)),
                                    Millis{r.integer(i, 2)}, Millis{r.integer(i, 3)},
                                    std::string(r.text(i, 4)), std::string(r.text(i, 5))});
      }
    });
  }

  Status holds(StatusReport& report) {
    pg::Params params;
    params.text(source_).i32(holds_shown_max);
    return one(in_schema(queries::status_holds), params,
               [&](const Rows& r) { report.holds = relay::read_holds(r, report.holds_total); });
  }

  Status horizon(StatusReport& report) {
    return one(std::string(queries::status_horizon), {},
               [&](const Rows& r) { report.horizon = relay::read_horizon(r); });
  }

 private:
  template <class Take>
  Status one(std::string_view sql, const pg::Params& params, Take take) {
    const auto rows = session_.exec(sql, params);
    if (!rows) return failure(rows.error());
    take(*rows);
    return {};
  }
  [[nodiscard]] std::string on_table(std::string_view sql) const {
    return pg::fill_template(sql, {{"table", table_.quoted()}});
  }
  [[nodiscard]] std::string in_schema(std::string_view sql) const {
    return pg::fill_template(sql, {{"schema", table_.quoted_schema()}});
  }

  pg::Session& session_;
  const pg::TableName& table_;
  std::string source_;
};

}  // namespace

double StatusReport::sent_per_s() const {
  std::map<std::string, double> by_owner;  // every lane of an owner carries the owner's whole rate
  for (const LaneState& lane : lanes) {
    if (!lane.owner.empty() && lane.remaining.count() > 0) by_owner[lane.owner] = lane.sent_per_s;
  }
  double total = 0;
  for (const auto& [owner, rate] : by_owner) total += rate;
  return total;
}

Result<StatusReport> read_status(pg::Session& session, const pg::TableName& table, Counting counting) {
  StatusReport report;
  Reader read(session, table);
  const Status done = session.transaction([&](pg::Session&) {
    return read.settings(report)
        .and_then([&] { return read.counts(report); })
        .and_then([&] { return read.lanes(report); })
        .and_then([&] { return read.instances(report); })
        .and_then([&] { return read.holds(report); })
        .and_then([&] { return read.horizon(report); })
        .and_then([&] { return counting == Counting::cheap ? read.sent_estimate(report.counts) : Status{}; });
  });
  if (!done) return failure(done.error());
  // Outside of the transaction, whose settings forbid the scan that this one is.
  if (counting == Counting::exact) {
    if (const Status exact = read.sent_exact(report.counts); !exact) return failure(exact.error());
  }
  return report;
}

}  // namespace outbox::commands
