// `outboxd replay`: sends rows again that were sent. Their ids stay what they are, so consumers that
// deduplicate refuse them, and those that lost their state take them.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  std::vector<std::int64_t> ids;
  std::optional<std::string> topic;
  std::optional<std::string> key;
  std::optional<std::string> since;
  std::optional<std::string> until;
  Because because;
  int rate = 1000;
  bool dry_run = false;

  [[nodiscard]] bool narrowed() const { return !ids.empty() || topic || since || until; }
};

void add_filter(pg::Params& params, const Asked& asked) {
  if (asked.ids.empty())
    params.null();
  else
    params.i64s(asked.ids);
  params.text(asked.topic).text(asked.key).untyped(asked.since).untyped(asked.until);
}

Result<std::string> count(pg::Session& session, const pg::TableName& table, const Asked& asked) {
  pg::Params params;
  add_filter(params, asked);
  const auto rows =
      session.exec(pg::fill_template(sql::queries::replay_count, {{"table", table.quoted()}}), params);
  if (!rows) return failure(rows.error());
  return "would send " + std::to_string(rows->integer(0, 0)) + " rows again, ids " +
         std::to_string(rows->integer(0, 1)) + " to " + std::to_string(rows->integer(0, 2));
}

std::string detail(const Asked& asked) {
  nlohmann::json out = nlohmann::json::object();
  if (!asked.ids.empty()) out["ids"] = asked.ids;
  for (const auto& [name, value] : {std::pair{"topic", &asked.topic}, std::pair{"key", &asked.key},
                                    std::pair{"since", &asked.since}, std::pair{"until", &asked.until}})
    if (*value) out[name] = **value;
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<std::string> replay(pg::Session& session, const pg::TableName& table, const Asked& asked) {
  const auto operation =
      begin_operation(session, table.quoted_schema(), "replay", detail(asked), asked.because);
  if (!operation) return failure(operation.error());
  const std::string sql = pg::fill_template(sql::queries::replay_rows, {{"schema", table.quoted_schema()}});
  std::int64_t above = 0;
  const auto total = in_batches(asked.rate, [&](int rows_max) -> Result<int> {
    pg::Params params;
    params.i64(*operation).i64(above);
    add_filter(params, asked);
    params.i32(rows_max);
    const auto rows = session.exec(sql, params);
    if (!rows) return failure(rows.error());
    for (int i = 0; i < rows->size(); ++i) above = std::max(above, rows->integer(i, 0));
    return rows->size();
  });
  if (!total) return failure(total.error());
  return "sends " + std::to_string(*total) + " rows again";
}

ExitCode run(const Asked& asked) {
  const auto pipelines = pipelines_or_report(asked.file, asked.pipeline);
  if (!pipelines) return pipelines.error();
  if (pipelines->size() != 1) {
    std::fputs("outboxd: replay works on one pipeline: name it with --pipeline\n", stderr);
    return ExitCode::usage;
  }
  const config::Pipeline& p = pipelines->front();
  pg::ConnectOptions connect;
  connect.uri = asked.uri.empty() ? p.postgres.uri : asked.uri;
  connect.application_name = "outboxd replay";
  auto session = pg::Session::connect(connect);
  if (!session) return report(p.name, session.error());
  const auto table = pg::parse_table_name(p.source.table).value();
  const auto said = asked.dry_run ? count(*session, table, asked) : replay(*session, table, asked);
  if (!said) return report(p.name, said.error());
  std::printf("%s: %s\n", p.name.c_str(), said->c_str());
  return ExitCode::ok;
}

}  // namespace

void declare_replay(CLI::App& app, Action& chosen) {
  auto asked = std::make_shared<Asked>();
  CLI::App* command =
      app.add_subcommand("replay", "Send rows again that were sent, with the ids that they have");
  declare_config_file(*command, asked->file);
  declare_pipeline(*command, asked->pipeline);
  command->add_option("--uri", asked->uri, "Connection string; overrides the file's");
  command->add_option("--id", asked->ids, "These rows")->type_name("ID...");
  command->add_option("--topic", asked->topic, "Rows of this topic")->type_name("TOPIC");
  command->add_option("--key", asked->key, "Rows of this key")->type_name("KEY");
  command->add_option("--since", asked->since, "Created at this time or later")->type_name("TIME");
  command->add_option("--until", asked->until, "Created before this time")->type_name("TIME");
  command->add_option("--rate", asked->rate, "Rows a second at the most")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  declare_because(*command, asked->because);
  command->add_flag("--dry-run", asked->dry_run, "Say how many rows it would be, and change nothing");
  command->footer("Who and why is kept in outbox_operation, and in last_error of each row.");
  command->callback([asked, &chosen] {
    if (!asked->narrowed()) throw CLI::ValidationError("replay", "needs --id, --topic, --since or --until");
    chosen = [asked] { return run(*asked); };
  });
}

}  // namespace outbox::commands
