// `outboxd pause TOPIC` and `outboxd resume TOPIC`: a topic, or one key of it, waits until an operator lets
// it go. Kept in the database as a hold, so it outlives every relay.

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "pg/identifier.hpp"
#include "pg/session.hpp"
#include "relay/commands/command_line.hpp"
#include "relay/commands/configured.hpp"
#include "sql/queries.hpp"

namespace outbox::commands {
namespace {

struct Asked {
  std::string file;
  std::string pipeline;
  std::string uri;
  std::string topic;
  std::string key;
  std::string reason;
  bool of_key = false;
};

using Act = Result<std::string> (*)(pg::Session&, const pg::TableName&, const Asked&);

pg::Params target(const pg::TableName& table, const Asked& asked) {
  pg::Params params;
  params.text(table.schema + "." + table.table)
      .text(asked.of_key ? "key" : "topic")
      .text(asked.topic)
      .text(asked.key);
  return params;
}

std::string filled(std::string_view sql, const pg::TableName& table) {
  return pg::fill_template(sql, {{"schema", table.quoted_schema()}});
}

Result<std::string> pause(pg::Session& session, const pg::TableName& table, const Asked& asked) {
  pg::Params params = target(table, asked);
  params.text("operator: " + asked.reason);
  const auto rows = session.exec(filled(sql::queries::operator_hold, table), params);
  if (!rows) return failure(rows.error());
  return std::string{rows->affected() > 0 ? "paused; what was claimed before is still sent"
                                          : "was on hold already"};
}

Result<std::string> resume(pg::Session& session, const pg::TableName& table, const Asked& asked) {
  const auto rows = session.exec(filled(sql::queries::operator_release, table), target(table, asked));
  if (!rows) return failure(rows.error());
  return "let go, with " + std::to_string(rows->integer(0, 0)) + " rows that waited";
}

ExitCode run(const Asked& asked, Act act) {
  const auto loaded = load_or_report(asked.file);
  if (!loaded) return loaded.error();
  const auto pipelines = select_or_report(loaded->config, asked.pipeline);
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

CLI::App* declare(CLI::App& app, const std::string& name, const std::string& help, Asked& asked) {
  CLI::App* command = app.add_subcommand(name, help);
  declare_config_file(*command, asked.file);
  declare_pipeline(*command, asked.pipeline);
  command->add_option("topic", asked.topic, "The topic")->required()->type_name("TOPIC");
  command->add_option("--key", asked.key, "Only this key of the topic")->type_name("KEY");
  command->add_option("--uri", asked.uri, "Connect so instead of as the file says");
  return command;
}

}  // namespace

void declare_pause(CLI::App& app, Action& chosen) {
  auto asked = std::make_shared<Asked>();
  CLI::App* pausing = declare(
      app, "pause", "Let a topic, or one key of it, wait: nothing is lost, and order is kept", *asked);
  pausing->add_option("--reason", asked->reason, "Why, for whoever finds it on hold")->required();
  pausing->callback([asked, pausing, &chosen] {
    asked->of_key = pausing->count("--key") > 0;
    chosen = [asked] { return run(*asked, pause); };
  });
  auto letting_go = std::make_shared<Asked>();
  CLI::App* resuming =
      declare(app, "resume", "Let go what is on hold, in order, whoever put it there", *letting_go);
  resuming->callback([letting_go, resuming, &chosen] {
    letting_go->of_key = resuming->count("--key") > 0;
    chosen = [letting_go] { return run(*letting_go, resume); };
  });
}

}  // namespace outbox::commands
