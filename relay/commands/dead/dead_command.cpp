// `outboxd dead list|show|retry|discard`: an operator decides about messages that Kafka will never take.

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "relay/commands/command_line.hpp"
#include "relay/commands/configured.hpp"
#include "relay/commands/dead/dead.hpp"
#include "relay/commands/person.hpp"

namespace outbox::commands {
namespace {

constexpr int listed_default = 100;
constexpr int listed_max = 10'000;  // also decided by one call

struct Asked {
  std::string file;
  std::string pipeline;
  std::string uri;
  DeadFilter filter;
  std::int64_t id = 0;
  std::string because;
  int limit = listed_default;
  bool all = false;
  bool dry_run = false;
  bool json = false;
  bool body = false;
};

struct Target {
  std::string name;
  pg::TableName table;
  pg::Session session;
};

Result<Target> connect(const Asked& asked, const config::Pipeline& pipeline) {
  const auto table = pg::parse_table_name(pipeline.source.table);
  if (!table) return failure(table.error());
  pg::ConnectOptions options;
  options.uri = asked.uri.empty() ? pipeline.postgres.uri : asked.uri;
  options.application_name = "outboxd dead";
  auto session = pg::Session::connect(options);
  if (!session) return failure(std::move(session.error()));
  return Target{pipeline.name, *table, std::move(*session)};
}

// An id names a row of one table, and a decision is about rows that were looked at: never about all pipelines
// at once.
tl::expected<config::Pipeline, ExitCode> the_pipeline(const Asked& asked) {
  auto pipelines = pipelines_or_report(asked.file, asked.pipeline);
  if (!pipelines) return tl::unexpected(pipelines.error());
  if (pipelines->size() == 1) return pipelines->front();
  std::fputs("outboxd: the file has several pipelines: name one with --pipeline\n", stderr);
  return tl::unexpected(ExitCode::usage);
}

ExitCode print(const std::string& text) {
  const bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return written ? ExitCode::ok : ExitCode::failed;
}

Result<DeadList> look(const Asked& asked, const config::Pipeline& pipeline) {
  auto target = connect(asked, pipeline);
  if (!target) return failure(target.error());
  return list_dead(target->session, target->table, asked.filter, asked.limit);
}

ExitCode list(const Asked& asked) {
  const auto pipelines = pipelines_or_report(asked.file, asked.pipeline);
  if (!pipelines) return pipelines.error();
  ExitCode code = ExitCode::ok;
  for (const auto& pipeline : *pipelines) {
    const auto found = look(asked, pipeline);
    if (!found) {
      code = worse(code, report(pipeline.name, found.error()));
      continue;
    }
    code =
        worse(code, print(asked.json ? dead_json(pipeline.name, *found) : dead_text(pipeline.name, *found)));
  }
  return code;
}

ExitCode show(const Asked& asked) {
  const auto pipeline = the_pipeline(asked);
  if (!pipeline) return pipeline.error();
  auto target = connect(asked, *pipeline);
  if (!target) return report(pipeline->name, target.error());
  const auto found =
      show_dead(target->session, target->table, asked.id, asked.body ? Body::show : Body::leave_out);
  if (!found) return report(pipeline->name, found.error());
  if (*found) return print(asked.json ? dead_json(pipeline->name, **found) : dead_text(**found));
  std::fprintf(stderr, "outboxd: %s: no message %lld is dead\n", pipeline->name.c_str(),
               static_cast<long long>(asked.id));
  return ExitCode::failed;
}

Result<std::int64_t> act(const Asked& asked, Target& target, const DeadList& found) {
  if (asked.because.empty()) return retry_dead(target.session, target.table, found.messages);
  return discard_dead(target.session, target.table, found.messages, asked.because + " (" + person() + ")");
}

ExitCode decide(const Asked& asked) {
  const auto pipeline = the_pipeline(asked);
  if (!pipeline) return pipeline.error();
  auto target = connect(asked, *pipeline);
  if (!target) return report(pipeline->name, target.error());
  const auto found = list_dead(target->session, target->table, asked.filter, listed_max);
  if (!found) return report(pipeline->name, found.error());
  if (asked.dry_run)
    return print(asked.json ? dead_json(pipeline->name, *found) : dead_text(pipeline->name, *found));
  const auto changed = act(asked, *target, *found);
  if (!changed) return report(pipeline->name, changed.error());
  const auto left = found->total - *changed;
  const std::string verb = asked.because.empty() ? " retried" : " discarded";
  const ExitCode printed =
      print(pipeline->name + ": " + std::to_string(*changed) + verb +
            (left > 0 ? ", " + std::to_string(left) + " left: repeat the command" : std::string{}) + "\n");
  if (*changed > 0 || asked.all) return printed;
  std::fprintf(stderr, "outboxd: %s: no dead message meets the filter\n", pipeline->name.c_str());
  return ExitCode::failed;
}

// ---------------------------------------------------------------------------------------------------------------------

void declare_database(CLI::App& command, Asked& asked) {
  declare_config_file(command, asked.file);
  declare_pipeline(command, asked.pipeline);
  command.add_option("--uri", asked.uri, "Connection string of an operator; overrides the file's");
  command.add_flag("--json", asked.json, "One JSON object a message");
}

void declare_filter(CLI::App& command, DeadFilter& filter) {
  command.add_option("--id", filter.ids, "Only these ids")->delimiter(',');
  command.add_option("--topic", filter.topic, "Only of this topic");
  command.add_option("--key", filter.key, "Only of this key");
  command.add_option("--reason", filter.reason, "Only where the reason holds this text, whatever its case");
  command.add_option("--since", filter.since,
                     "Only written then or later: 2026-11-29T16:00:00Z, '2026-11-29'");
  command.add_option("--until", filter.until, "Only written before then");
}

bool says_which(const Asked& asked) {
  const DeadFilter& f = asked.filter;
  return asked.all || !f.ids.empty() || f.topic || f.key || f.reason || f.since || f.until;
}

CLI::App* declare_decision(CLI::App& dead, const std::string& name, const std::string& help,
                           const std::shared_ptr<Asked>& asked, Action& chosen) {
  CLI::App* command = dead.add_subcommand(name, help);
  declare_database(*command, *asked);
  declare_filter(*command, asked->filter);
  command->add_flag("--all", asked->all, "All of them");
  command->add_flag("--dry-run", asked->dry_run, "Only list what would be decided");
  command->callback([asked, name, &chosen] {
    if (!says_which(*asked))
      throw CLI::ValidationError("dead " + name, "say which ones: --id, --topic, --key, …, or --all");
    chosen = [asked] { return decide(*asked); };
  });
  return command;
}

void declare_list(CLI::App& dead, Action& chosen) {
  auto asked = std::make_shared<Asked>();
  CLI::App* command = dead.add_subcommand("list", "Which messages are dead, and why");
  declare_database(*command, *asked);
  declare_filter(*command, asked->filter);
  command->add_option("--limit", asked->limit, "How many to list")
      ->check(CLI::Range(1, listed_max))
      ->capture_default_str();
  command->callback([asked, &chosen] { chosen = [asked] { return list(*asked); }; });
}

void declare_show(CLI::App& dead, Action& chosen) {
  auto asked = std::make_shared<Asked>();
  CLI::App* command = dead.add_subcommand("show", "One dead message, and what waits behind it");
  declare_database(*command, *asked);
  command->add_option("id", asked->id, "Its id")->required();
  command->add_flag("--body", asked->body, "Also its body, the first 64 Ki characters");
  command->callback([asked, &chosen] { chosen = [asked] { return show(*asked); }; });
}

}  // namespace

void declare_dead(CLI::App& app, Action& chosen) {
  CLI::App* dead =
      app.add_subcommand("dead", "Messages that Kafka will never take: list, show, retry, discard");
  dead->require_subcommand(1);
  declare_list(*dead, chosen);
  declare_show(*dead, chosen);
  declare_decision(*dead, "retry", "Send them again, each before the later messages of its key",
                   std::make_shared<Asked>(), chosen);
  const auto asked = std::make_shared<Asked>();
  declare_decision(*dead, "discard", "Give them up for good, and let their keys go", asked, chosen)
      ->add_option("--because", asked->because, "Why; kept with the row, with who did it")
      ->required()
      ->check([](const std::string& text) { return text.empty() ? "must say something" : ""; });
}

}  // namespace outbox::commands
