// `outboxd pause` and `outboxd resume`: a topic, one key of it, or a whole pipeline waits until an operator
// lets it go. Kept in the database as a hold, so it outlives every relay and every instance sees it.

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pg/identifier.hpp"
#include "pg/session.hpp"
#include "relay/commands/command_line.hpp"
#include "relay/commands/configured.hpp"
#include "relay/commands/operation.hpp"
#include "relay/log/line.hpp"
#include "sql/queries/operator.hpp"

namespace outbox::commands {
namespace {

struct Asked {
  std::string file;
  std::string pipeline;
  std::string uri;
  std::string topic;
  std::string key;
  Because because;
  std::string paused_by;  ///< whose pause ends; empty: one's own, or the only one
  bool all = false;
  bool of_key = false;

  [[nodiscard]] std::string scope() const { return all ? "pipeline" : of_key ? "key" : "topic"; }
};

using Act = Result<std::string> (*)(pg::Session&, const pg::TableName&, const Asked&);

pg::Params params_of(const Asked& asked) {
  pg::Params params;
  params.text(asked.scope()).text(asked.topic).text(asked.key);
  params.text(asked.because.reason).text(asked.because.who());
  return params;
}

Result<pg::Rows> ask(pg::Session& session, const pg::TableName& table, std::string_view sql,
                     const pg::Params& params) {
  auto rows = session.exec(pg::fill_template(sql, {{"schema", table.quoted_schema()}}), params);
  if (!rows) return failure(with_migrate_advice(rows.error()));
  return rows;
}

Result<std::string> pause(pg::Session& session, const pg::TableName& table, const Asked& asked) {
  const auto rows = ask(session, table, sql::queries::operator_pause, params_of(asked));
  if (!rows) return failure(rows.error());
  return std::string{rows->boolean(0, 0) ? "paused; what was claimed before is still sent"
                                         : "was paused already by " + asked.because.who()};
}

Result<std::string> resume(pg::Session& session, const pg::TableName& table, const Asked& asked) {
  pg::Params params = params_of(asked);
  params.text(asked.paused_by.empty() ? std::nullopt : std::optional<std::string_view>(asked.paused_by));
  const auto rows = ask(session, table, sql::queries::operator_resume, params);
  if (!rows) return failure(rows.error());
  enum : int { lifted, let_go, still };
  std::string said = rows->is_null(0, lifted) ? "was not paused"
                     : rows->is_null(0, let_go)
                         ? "the pause of " + std::string{rows->text(0, lifted)} + " ended"
                         : "let go";
  if (!rows->is_null(0, let_go) && !asked.all) {
    const std::int64_t waited = rows->integer(0, let_go);
    if (!rows->is_null(0, lifted) || waited > 0)
      said = "let go, with " + std::to_string(waited) + " rows that waited";
  }
  if (!rows->is_null(0, still)) said += "; still on hold: " + log::text_value(rows->text(0, still));
  return said;
}

ExitCode run(const Asked& asked, Act act) {
  const auto pipelines = pipelines_or_report(asked.file, asked.pipeline);
  if (!pipelines) return pipelines.error();
  ExitCode code = ExitCode::ok;
  for (const config::Pipeline& p : *pipelines) {
    pg::ConnectOptions connect;
    connect.uri = asked.uri.empty() ? p.postgres.uri : asked.uri;
    connect.application_name = "outboxd pause";
    auto session = pg::Session::connect(connect);
    const auto table = pg::parse_table_name(p.source.table).value();
    const Result<std::string> said = session ? act(*session, table, asked) : failure(session.error());
    if (said)
      std::printf("%s: %s\n", p.name.c_str(), said->c_str());
    else
      code = worse(code, report(p.name, said.error()));
  }
  return code;
}

CLI::App* declare(CLI::App& app, const std::string& name, const std::string& help,
                  const std::shared_ptr<Asked>& asked, Act act, Action& chosen) {
  CLI::App* command = app.add_subcommand(name, help);
  declare_config_file(*command, asked->file);
  declare_pipeline(*command, asked->pipeline);
  auto* topic = command->add_option("topic", asked->topic, "The topic")->type_name("TOPIC");
  auto* key =
      command->add_option("--key", asked->key, "Only this key of the topic")->type_name("KEY")->needs(topic);
  command->add_flag("--all", asked->all, "The whole pipeline: nothing is claimed any more")
      ->excludes(topic, key);
  command->add_option("--uri", asked->uri, "Connection string; overrides the file's");
  command->callback([asked, command, name, act, &chosen] {
    if (!asked->all && asked->topic.empty()) throw CLI::ValidationError(name, "needs TOPIC, or --all");
    asked->of_key = command->count("--key") > 0;
    chosen = [asked, act] { return run(*asked, act); };
  });
  return command;
}

}  // namespace

void declare_pause(CLI::App& app, Action& chosen) {
  auto pausing = std::make_shared<Asked>();
  declare_because(
      *declare(app, "pause",
               "Let a topic, one key of it, or a pipeline wait: nothing is lost, and order is kept", pausing,
               pause, chosen),
      pausing->because);
  auto letting_go = std::make_shared<Asked>();
  CLI::App* resuming =
      declare(app, "resume", "End a pause; what waited goes on in order, once nothing else holds it",
              letting_go, resume, chosen);
  resuming
      ->add_option("--paused-by", letting_go->paused_by, "Whose pause ends, where several people paused it")
      ->type_name("NAME");
  resuming->add_option("--reason", letting_go->because.reason, "Why; it is kept");
  resuming->add_option("--by", letting_go->because.by, "Who, where that is not who runs the program")
      ->type_name("NAME");
}

}  // namespace outbox::commands
