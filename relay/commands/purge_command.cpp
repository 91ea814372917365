// `outboxd purge`: deletes rows that are settled and old. What is not settled, it refuses.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "pg/identifier.hpp"
#include "pg/session.hpp"
#include "relay/commands/command_line.hpp"
#include "relay/commands/configured.hpp"
#include "relay/commands/operation.hpp"
#include "sql/queries/operator.hpp"

namespace outbox::commands {
namespace {

struct Asked {
  std::string file;
  std::string pipeline;
  std::string uri;
  std::string status = "SENT";
  std::string before;
  std::optional<std::string> topic;
  Because because;
  int rate = 10'000;
  bool dry_run = false;
};

std::string refuse_unsettled(const std::string& status) {
  if (status == "SENT" || status == "DISCARDED" || status == "CANCELLED") return "";
  return status + " rows are not settled and stay: only SENT, DISCARDED and CANCELLED ones can be purged" +
         (status == "DEAD" ? "; decide about dead ones with `outboxd dead retry` or `dead discard` first"
                           : "");
}

Result<std::string> count(pg::Session& session, const pg::TableName& table, const Asked& asked) {
  pg::Params params;
  params.text(asked.status).untyped(asked.before).text(asked.topic);
  const auto rows =
      session.exec(pg::fill_template(sql::queries::purge_count, {{"table", table.quoted()}}), params);
  if (!rows) return failure(rows.error());
  return "would delete " + std::to_string(rows->integer(0, 0)) + " rows that are " + asked.status;
}

Result<std::string> purge(pg::Session& session, const pg::TableName& table, const Asked& asked) {
  pg::Params time;
  time.untyped(asked.before);
  const auto before = session.exec(sql::queries::purge_before, time);
  if (!before) return failure(before.error());
  nlohmann::json detail{{"status", asked.status}, {"before", before->text(0, 0)}};
  if (asked.topic) detail["topic"] = *asked.topic;
  const auto operation =
      begin_operation(session, table.quoted_schema(), "purge",
                      detail.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), asked.because);
  if (!operation) return failure(operation.error());
  const std::string sql = pg::fill_template(sql::queries::purge_rows, {{"schema", table.quoted_schema()}});
  std::int64_t above = 0;
  const auto total = in_batches(asked.rate, [&](int rows_max) -> Result<int> {
    pg::Params params;
    params.i64(*operation)
        .i64(above)
        .text(asked.status)
        .untyped(before->text(0, 0))
        .text(asked.topic)
        .i32(rows_max);
    const auto rows = session.exec(sql, params);
    if (!rows) return failure(rows.error());
    for (int i = 0; i < rows->size(); ++i) above = std::max(above, rows->integer(i, 0));
    return rows->size();
  });
  if (!total) return failure(total.error());
  return "deleted " + std::to_string(*total) + " rows that were " + asked.status;
}

ExitCode run(const Asked& asked) {
  const auto pipelines = pipelines_or_report(asked.file, asked.pipeline);
  if (!pipelines) return pipelines.error();
  if (pipelines->size() != 1) {
    std::fputs("outboxd: purge works on one pipeline: name it with --pipeline\n", stderr);
    return ExitCode::usage;
  }
  const config::Pipeline& p = pipelines->front();
  pg::ConnectOptions connect;
  connect.uri = asked.uri.empty() ? p.postgres.uri : asked.uri;
  connect.application_name = "outboxd purge";
  auto session = pg::Session::connect(connect);
  if (!session) return report(p.name, session.error());
  const auto table = pg::parse_table_name(p.source.table).value();
  const auto said = asked.dry_run ? count(*session, table, asked) : purge(*session, table, asked);
  if (!said) return report(p.name, said.error());
  std::printf("%s: %s\n", p.name.c_str(), said->c_str());
  return ExitCode::ok;
}

}  // namespace

void declare_purge(CLI::App& app, Action& chosen) {
  auto asked = std::make_shared<Asked>();
  CLI::App* command = app.add_subcommand("purge", "Delete rows that are settled and old");
  declare_config_file(*command, asked->file);
  declare_pipeline(*command, asked->pipeline);
  command->add_option("--uri", asked->uri, "Connection string; overrides the file's");
  command->add_option("--status", asked->status, "SENT, DISCARDED or CANCELLED")
      ->check(refuse_unsettled)
      ->type_name("STATUS")
      ->capture_default_str();
  command
      ->add_option("--before", asked->before,
                   "Sent (if they were) and created before this time: '2026-11-01', 'yesterday'")
      ->required()
      ->type_name("TIME");
  command->add_option("--topic", asked->topic, "Only rows of this topic")->type_name("TOPIC");
  command->add_option("--rate", asked->rate, "Rows a second at the most")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  declare_because(*command, asked->because);
  command->add_flag("--dry-run", asked->dry_run, "Say how many rows it would be, and change nothing");
  command->footer(
      "What is gone can be neither replayed nor reconciled. Who and why is kept in outbox_operation.");
  command->callback([asked, &chosen] { chosen = [asked] { return run(*asked); }; });
}

}  // namespace outbox::commands
