// `outboxd migrate`: brings each pipeline's database to the version this program knows, or prints the SQL of
// it.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "relay/commands/command_line.hpp"
#include "relay/commands/configured.hpp"
#include "relay/commands/migrate/lock_patience.hpp"
#include "relay/commands/migrate/migrate.hpp"
#include "relay/commands/migrate/view.hpp"

namespace outbox::commands {
namespace {

struct Asked {
  std::string file;
  std::string pipeline;
  std::string uri;
  std::string table;
  std::string schema;
  std::vector<std::string> only;
  std::vector<std::string> with;
  std::string body_type{"json"};
  int days_ahead = 7;
  bool print = false;
  bool grants = false;
  std::string view;
  std::vector<std::string> columns;
  std::string topic;
};

struct Target {
  std::string name;
  std::string uri;
  std::string table;
};

// Owners of tables are seldom the relay's role, so --uri replaces what the file says; with --table or
// --schema no file is needed.
tl::expected<std::vector<Target>, ExitCode> targets(const Asked& asked) {
  if (!asked.schema.empty()) {
    const auto schema = pg::parse_name(asked.schema);
    if (schema)
      return std::vector{Target{asked.schema, asked.uri,
                                pg::TableName{*schema, relay::MigrateOptions{}.table.table}.quoted()}};
    std::fprintf(stderr, "outboxd: --schema: %s\n", schema.error().text().c_str());
    return tl::unexpected(ExitCode::usage);
  }
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

using AskedView = std::optional<relay::View>;

Result<AskedView> view_of(const Asked& asked) {
  if (asked.view.empty()) return AskedView{};
  auto name = pg::parse_table_name(asked.view);
  if (!name) return failure(std::move(name.error()));
  relay::View view{std::move(*name), {}, asked.topic};
  for (const std::string& text : asked.columns) {
    auto column = relay::parse_view_column(text);
    if (!column) return failure(std::move(column.error()));
    view.columns.push_back(std::move(*column));
  }
  if (Status right = relay::check_view(view, *relay::parse_body_type(asked.body_type)); !right)
    return failure(std::move(right.error()));
  return AskedView{std::move(view)};
}

Result<relay::MigrateOptions> options_for(const Asked& asked, const Target& target) {
  auto table = pg::parse_table_name(target.table);
  if (!table) return failure(std::move(table.error()));
  relay::MigrateOptions options;
  options.table = std::move(*table);
  options.body_type = *relay::parse_body_type(asked.body_type);
  options.days_ahead = asked.days_ahead;
  options.only = asked.only;
  options.with = asked.with;
  return options;
}

Result<std::string> script(const relay::MigrateOptions& options, const AskedView& view, bool grants) {
  std::vector<Result<std::string>> parts{relay::render(options)};
  if (grants) parts.push_back(relay::render_grants(options));
  if (view) parts.push_back(relay::render_view(*view, options));
  if (view && grants) parts.push_back(relay::render_view_grants(*view));
  std::string out;
  for (auto& part : parts) {
    if (!part) return part;
    out += (out.empty() ? "" : "\n") + *part;
  }
  return out;
}

std::string said(relay::ViewChange change) {
  switch (change) {
    case relay::ViewChange::none:
      return " is as asked";
    case relay::ViewChange::made:
      return " made";
    case relay::ViewChange::replaced:
      return " replaced";
  }
  return {};
}

std::string said(const Target& target, const relay::MigrateReport& report) {
  std::string out = target.name + ":";
  for (const auto& set : report.sets)
    out += (&set == report.sets.data() ? " " : ", ") + set.name + " " + std::to_string(set.after);
  out += report.applied.empty() ? ", nothing to do" : ", applied";
  for (const std::string& name : report.applied) out += " " + name;
  if (report.partitions_made > 0) out += ", " + std::to_string(report.partitions_made) + " partitions made";
  if (report.days_left_out) out += ", days left out whose rows in the DEFAULT partition are too many";
  return out;
}

// What to say of it.
Result<std::string> migrate_view(pg::Session& session, const relay::View& view,
                                 const relay::MigrateOptions& options, bool grants) {
  const auto change = relay::make_view(session, view, options);
  if (!change) return failure(change.error());
  if (grants) {
    const auto rights = relay::render_view_grants(view);
    if (!rights) return failure(rights.error());
    const Status given = relay::with_patience(options.lock_patience, [&] {
      return session.exec_script("SET LOCAL lock_timeout = '100ms';\n" + *rights);
    });
    if (!given) return failure(given.error());
  }
  return ", view " + view.name.quoted() + said(*change);
}

Status migrate_one(const Asked& asked, const AskedView& view, const Target& target) {
  const auto options = options_for(asked, target);
  if (!options) return failure(options.error());
  if (asked.print) {
    const auto text = script(*options, view, asked.grants);
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
    if (Status granted = relay::apply_grants(*session, *options); !granted) return granted;
  }
  std::string of_view;
  if (view) {
    auto made = migrate_view(*session, *view, *options, asked.grants);
    if (!made) return failure(std::move(made.error()));
    of_view = std::move(*made);
  }
  std::printf("%s%s%s\n", said(target, *report).c_str(), asked.grants ? ", grants applied" : "",
              of_view.c_str());
  return {};
}

// The names of sets, before anything is connected to.
tl::expected<void, ExitCode> check_sets(const Asked& asked) {
  relay::MigrateOptions options;
  options.only = asked.only;
  options.with = asked.with;
  const auto sets = relay::chosen_sets(options);
  if (!sets) {
    std::fprintf(stderr, "outboxd: %s\n", sets.error().text().c_str());
    return tl::unexpected(ExitCode::usage);
  }
  const bool outbox =
      std::ranges::find(*sets, "outbox", [](const auto* s) { return s->name; }) != sets->end();
  if (outbox || asked.view.empty()) return {};
  std::fputs("outboxd: --view is of an outbox table: without the set outbox there is none\n", stderr);
  return tl::unexpected(ExitCode::usage);
}

ExitCode migrate(const Asked& asked) {
  if (const auto named = check_sets(asked); !named) return named.error();
  const auto view = view_of(asked);
  if (!view) {
    std::fprintf(stderr, "outboxd: --view: %s\n", view.error().text().c_str());
    return ExitCode::usage;
  }
  const auto all = targets(asked);
  if (!all) return all.error();
  if (*view && all->size() > 1) {
    std::fputs("outboxd: --view is of one outbox: name its pipeline with --pipeline\n", stderr);
    return ExitCode::usage;
  }
  ExitCode code = ExitCode::ok;
  for (const Target& target : *all) {
    if (const Status done = migrate_one(asked, *view, target); !done)
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
  command->add_option("--uri", asked->uri, "Connection string of the tables' owner; overrides the file's");
  CLI::Option* table =
      command->add_option("--table", asked->table, "This table, without a configuration file");
  table->excludes(command->get_option("--pipeline"))->excludes(command->get_option("--config"));
  CLI::Option* schema = command->add_option(
      "--schema", asked->schema, "This schema, without a configuration file; its outbox table is outbox_msg");
  schema->excludes(table)
      ->excludes(command->get_option("--pipeline"))
      ->excludes(command->get_option("--config"));
  command
      ->add_option(
          "--only", asked->only,
          "Only this set of tables, with what every set needs: outbox, or consumer for a database without an "
          "outbox. Once for each")
      ->type_name("SET")
      ->allow_extra_args(false);
  command->add_option("--with", asked->with, "Also this set, which is not made by default. Once for each")
      ->type_name("SET")
      ->allow_extra_args(false);
  command->add_option("--body-type", asked->body_type, "Type of a new table's body")
      ->check(CLI::IsMember({"json", "jsonb", "text", "bytea"}))
      ->capture_default_str();
  command->add_option("--partitions-ahead", asked->days_ahead, "Daily partitions made ahead")
      ->check(CLI::Range(0, 366))
      ->capture_default_str();
  command->add_flag("--print", asked->print,
                    "Print the SQL for an empty database instead of running anything");
  command->add_flag("--grants", asked->grants, "Also the roles and their grants (needs CREATEROLE)");
  CLI::Option* view =
      command
          ->add_option("--view", asked->view, "Also a view of this name, with an application's own columns")
          ->type_name("NAME");
  command
      ->add_option(
          "--column", asked->columns,
          "A column of the view, and where it goes: NAME=COLUMN of the table, or NAME=header:HEADER; "
          "NAME:text where the application keeps text. Once for each")
      ->type_name("MAPPING")
      ->allow_extra_args(false)
      ->needs(view);
  command->add_option("--topic", asked->topic, "The topic of every row of a view without such a column")
      ->type_name("TOPIC")
      ->needs(view);
  command->callback([asked, table, schema, &chosen] {
    if (table->count() + schema->count() > 0 && asked->uri.empty() && !asked->print) {
      throw CLI::ValidationError(table->count() > 0 ? "--table" : "--schema", "needs --uri or --print");
    }
    chosen = [asked] { return migrate(*asked); };
  });
}

}  // namespace outbox::commands
