#include "relay/commands/command_line.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace outbox::commands {
namespace {

// CLI11 has statuses of its own; ours are documented.
Action answer(const std::shared_ptr<CLI::App>& app, const CLI::ParseError& error) {
  const int status = app->exit(error);
  return [status] { return status == 0 ? ExitCode::ok : ExitCode::usage; };
}

}  // namespace

void declare_config_file(CLI::App& command, std::string& file) {
  command
      .add_option("-c,--config", file,
                  "The configuration; default ./outboxd.yaml, then /etc/outboxd/outboxd.yaml")
      ->type_name("FILE");
}

void declare_pipeline(CLI::App& command, std::string& name) {
  command.add_option("--pipeline", name, "Only this pipeline; default all of the file")->type_name("NAME");
}

Action read_command_line(int argc, const char* const* argv) {
  auto app = std::make_shared<CLI::App>("outboxd relays a transactional outbox from PostgreSQL to Kafka.",
                                        "outboxd");
  app->require_subcommand(1);
  app->footer("\n" + exit_codes_text() + "\nThe manual of all options: outboxd config docs");
  Action chosen;
  declare_run(*app, chosen);
  declare_migrate(*app, chosen);
  declare_config(*app, chosen);
  declare_status(*app, chosen);
  declare_check(*app, chosen);
  declare_consumer(*app, chosen);
  declare_pause(*app, chosen);
  declare_replay(*app, chosen);
  declare_reconcile(*app, chosen);
  declare_purge(*app, chosen);
  declare_dead(*app, chosen);
  declare_ledger(*app, chosen);
  declare_demo(*app, chosen);
  declare_manual(*app, chosen);
  declare_version(*app, chosen);
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return answer(app, error);
  }
  return chosen;
}

}  // namespace outbox::commands
