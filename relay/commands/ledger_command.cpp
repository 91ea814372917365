// `outboxd ledger show`: what the ledger of an exactly-once pipeline says last of each lane, and whether it
// is marked. Reads only; no lane is fenced by it.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "pg/identifier.hpp"
#include "pg/session.hpp"
#include "relay/commands/command_line.hpp"
#include "relay/commands/configured.hpp"
#include "relay/commands/topic_options.hpp"
#include "relay/kafka/ledger.hpp"
#include "sql/queries/operator.hpp"
#include "sql/queries/relay.hpp"

namespace outbox::commands {
namespace {

constexpr Millis patience{10'000};

struct Asked {
  std::string file;
  std::string pipeline;
};

struct Lanes {
  std::int32_t generation = 0;
  std::int16_t count = 0;
  bool present = false;
};

Result<std::vector<Lanes>> lanes_of(pg::Session& session, const pg::TableName& table) {
  const auto sql = pg::fill_template(sql::queries::source_ledger, {{"schema", table.quoted_schema()}});
  const auto rows = session.exec(sql, pg::Params{}.text(table.schema + "." + table.table));
  if (!rows) return failure(rows.error());
  std::vector<Lanes> out;
  for (int row = 0; row < rows->size(); ++row)
    out.push_back({static_cast<std::int32_t>(rows->integer(row, 0)),
                   static_cast<std::int16_t>(rows->integer(row, 1)), rows->boolean(row, 3)});
  return out;
}

Result<std::int64_t> unmarked(pg::Session& session, const pg::TableName& table,
                              const std::vector<relay::LedgerRow>& entry) {
  std::vector<std::int64_t> ids;
  std::vector<Uuid> msg_ids;
  std::vector<std::int32_t> generations;
  for (const relay::LedgerRow& row : entry) {
    ids.push_back(row.id.value);
    msg_ids.push_back(row.msg_id);
    generations.push_back(row.generation);
  }
  const auto sql = pg::fill_template(sql::queries::ledger_unmarked, {{"table", table.quoted()}});
  const auto rows = session.exec(sql, pg::Params{}.i64s(ids).uuids(msg_ids).i32s(generations));
  if (!rows) return failure(rows.error());
  return rows->integer(0, 0);
}

Status show_lane(pg::Session& session, const pg::TableName& table, const relay::KafkaOptions& kafka,
                 const std::string& topic, relay::LedgerLane ledger_lane) {
  const std::atomic<bool> stopping{false};
  const auto last = relay::read_ledger(kafka, topic, ledger_lane, patience, stopping);
  if (!last) return failure(last.error());
  if (!*last) {
    std::printf("  %10d %5d %7s\n", ledger_lane.generation, ledger_lane.lane.value, "none");
    return {};
  }
  const auto& rows = (*last)->entry.rows;
  const auto open = unmarked(session, table, rows);
  if (!open) return failure(open.error());
  const auto [first, newest] =
      std::ranges::minmax_element(rows, {}, [](const relay::LedgerRow& row) { return row.id; });
  const bool any = !rows.empty();
  std::printf("  %10d %5d %7zu %20lld %20lld %12lld %9lld  %s\n", ledger_lane.generation,
              ledger_lane.lane.value, rows.size(), static_cast<long long>(any ? first->id.value : 0),
              static_cast<long long>(any ? newest->id.value : 0),
              static_cast<long long>((*last)->offset.value), static_cast<long long>(*open),
              rfc3339((*last)->written_at).c_str());
  return {};
}

Status show(const config::Pipeline& p) {
  const auto table = pg::parse_table_name(p.source.table).value();
  pg::ConnectOptions connect;
  connect.uri = p.postgres.uri;
  connect.application_name = "outboxd ledger";
  auto session = pg::Session::connect(connect);
  if (!session) return failure(session.error());
  const auto generations = lanes_of(*session, table);
  if (!generations) return failure(generations.error());
  const std::string topic = ledger_topic(p);
  relay::KafkaOptions kafka;
  kafka.properties = p.kafka;
  std::printf("%s: ledger %s\n  %10s %5s %7s %20s %20s %12s %9s  %s\n", p.name.c_str(), topic.c_str(),
              "generation", "lane", "rows", "lowest id", "highest id", "at offset", "unmarked", "written");
  for (const Lanes& lanes : *generations) {
    if (!lanes.present) std::printf("  generation %d is not settled yet\n", lanes.generation);
    for (std::int16_t lane = 0; lane < lanes.count; ++lane)
      if (auto shown = show_lane(*session, table, kafka, topic, {lanes.generation, relay::LaneId{lane}});
          !shown)
        return shown;
  }
  return {};
}

ExitCode run(const Asked& asked) {
  const auto pipelines = pipelines_or_report(asked.file, asked.pipeline);
  if (!pipelines) return pipelines.error();
  ExitCode code = ExitCode::ok;
  for (const config::Pipeline& p : *pipelines) {
    if (p.delivery != config::Delivery::exactly_once) {
      std::printf("%s: delivers at least once, and keeps no ledger\n", p.name.c_str());
    } else if (const Status shown = show(p); !shown) {
      code = worse(code, report(p.name, shown.error()));
    }
  }
  return code;
}

}  // namespace

void declare_ledger(CLI::App& app, Action& chosen) {
  CLI::App* ledger = app.add_subcommand("ledger", "The record that exactly-once delivery keeps inside Kafka");
  ledger->require_subcommand(1);
  auto asked = std::make_shared<Asked>();
  CLI::App* showing = ledger->add_subcommand(
      "show", "What it says last of each lane, and how many of those rows are not marked");
  declare_config_file(*showing, asked->file);
  declare_pipeline(*showing, asked->pipeline);
  showing->callback([asked, &chosen] { chosen = [asked] { return run(*asked); }; });
}

}  // namespace outbox::commands
