// `outboxd migrate`: brings each pipeline's database to the version this program knows, or prints the SQL of
// it.

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "relay/commands/command_line.hpp"
#include "relay/commands/configured.hpp"
#include "relay/commands/migrate/migrate.hpp"

namespace outbox::commands {
namespace {

struct Asked {
  std::string file;
  std::string pipeline;
  std::string uri;
  std::string table;
  std::string body_type{"json"};
  int days_ahead = 7;
  bool print = false;
  bool grants = false;
};

struct Target {
  std::string name;
  std::string uri;
  std::string table;
};

// Owners of tables are seldom the relay's role, so --uri replaces what the file says; with --table no file is
// needed.
tl::expected<std::vector<Target>, ExitCode> targets(const Asked& asked) {
  if (!asked.table.empty()) {
    const auto table = pg::parse_table_name(asked.table);
    if (table) return std::vector{Target{asked.table, asked.uri, asked.table}};
    std::fprintf(stderr, "outboxd: --table: %s\n", table.error().text().c_str());
    return tl::unexpected(ExitCode::usage);
  }
  const auto loaded = load_or_report(asked.file);
  if (!loaded) return tl::unexpected(loaded.error());
  const auto pipelines = select_or_report(loaded->config, asked.pipeline);
  if (!pipelines) return tl::unexpected(pipelines.error());
  if (!asked.uri.empty() && pipelines->size() > 1) {
    std::fputs("outboxd: --uri is one database: name its pipeline with --pipeline\n", stderr);
    return tl::unexpected(ExitCode::usage);
  }
  std::vector<Target> out;
  for (const auto& p : *pipelines)
    out.push_back({p.name, asked.uri.empty() ? p.postgres.uri : asked.uri, p.source.table});
  return out;
}

Result<relay::MigrateOptions> options_for(const Asked& asked, const Target& target) {
  auto table = pg::parse_table_name(target.table);
  if (!table) return failure(std::move(table.error()));
  relay::MigrateOptions options;
  options.table = std::move(*table);
  options.body_type = *relay::parse_body_type(asked.body_type);
  options.days_ahead = asked.days_ahead;
  return options;
}

Result<std::string> script(const relay::MigrateOptions& options, bool grants) {
  auto text = relay::render(options);
  if (!text || !grants) return text;
  auto rights = relay::render_grants(options.table);
  if (!rights) return rights;
  return *text + "\n" + *rights;
}

std::string said(const Target& target, const relay::MigrateReport& report) {
  std::string out = target.name + ": version " + std::to_string(report.version_after);
  out += report.applied.empty() ? ", nothing to do" : ", applied";
  for (const std::string& name : report.applied) out += " " + name;
  if (report.partitions_made > 0) out += ", " + std::to_string(report.partitions_made) + " partitions made";
  return out;
}

Status migrate_one(const Asked& asked, const Target& target) {
  const auto options = options_for(asked, target);
  if (!options) return failure(options.error());
  if (asked.print) {
    const auto text = script(*options, asked.grants);
    if (!text) return failure(text.error());
    std::fputs(text->c_str(), stdout);
    return {};
  }
  pg::ConnectOptions connect;
  connect.uri = target.uri;
  connect.application_name = "outboxd migrate";
  auto session = pg::Session::connect(connect);
  if (!session) return failure(std::move(session.error()));
  const auto report = relay::migrate(*session, *options);
  if (!report) return failure(report.error());
  if (asked.grants) {
    if (Status granted = relay::apply_grants(*session, options->table); !granted) return granted;
  }
  std::printf("%s%s\n", said(target, *report).c_str(), asked.grants ? ", grants applied" : "");
  return {};
}

ExitCode migrate(const Asked& asked) {
  const auto all = targets(asked);
  if (!all) return all.error();
  ExitCode code = ExitCode::ok;
  for (const Target& target : *all) {
    if (const Status done = migrate_one(asked, target); !done)
      code = worse(code, report(target.name, done.error()));
  }
  return code;
}

}  // namespace

void declare_migrate(CLI::App& app, Action& chosen) {
  auto asked = std::make_shared<Asked>();
  CLI::App* command = app.add_subcommand("migrate", "Make or update the tables; safe to repeat");
  declare_config_file(*command, asked->file);
  declare_pipeline(*command, asked->pipeline);
  command->add_option("--uri", asked->uri, "Connect as the tables' owner instead of as the file says");
  CLI::Option* table =
      command->add_option("--table", asked->table, "This table, without a configuration file");
  table->excludes(command->get_option("--pipeline"))->excludes(command->get_option("--config"));
  command->add_option("--body-type", asked->body_type, "Type of a new table's body")
      ->check(CLI::IsMember({"json", "jsonb", "text", "bytea"}))
      ->capture_default_str();
  command->add_option("--partitions-ahead", asked->days_ahead, "Daily partitions made ahead")
      ->check(CLI::Range(0, 366))
      ->capture_default_str();
  command->add_flag("--print", asked->print,
                    "Print the SQL for an empty database instead of running anything");
  command->add_flag("--grants", asked->grants, "Also the roles and their grants (needs CREATEROLE)");
  command->callback([asked, table, &chosen] {
    if (table->count() > 0 && asked->uri.empty() && !asked->print) {
      throw CLI::ValidationError("--table", "needs --uri or --print");
    }
    chosen = [asked] { return migrate(*asked); };
  });
}

}  // namespace outbox::commands
