// `outboxd run`: the boot order of the daemon.

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "relay/commands/boot.hpp"
#include "relay/commands/command_line.hpp"
#include "relay/commands/configured.hpp"

namespace outbox::commands {
namespace {

void say_what_starts(const config::Config& config, const log::Logger& logger) {
  logger.info(
      "starting",
      {{"version", OUTBOX_VERSION}, {"instance", config.instance}, {"pipelines", config.pipelines.size()}});
  for (const auto& p : config.pipelines) {
    if (p.source.after_sent != relay::AfterSent::erase) continue;
    logger.warn("rows_are_deleted_once_sent", {{"pipeline", p.name},
                                               {"given_up",
                                                "replay, reconciliation, protection against a "
                                                "broker that loses what it acknowledged"}});
  }
}

ExitCode run(const std::string& file) {
  auto loaded = load_or_report(file);
  if (!loaded) return loaded.error();
  config::Config& config = loaded->config;
  if (config.instance.empty()) config.instance = fresh_instance();
  const log::Logger logger = open_log(config.log);
  say_what_starts(config, logger);
  if (const ExitCode code = look_at_librdkafka(logger); code != ExitCode::ok) return code;
  if (const ExitCode code = look_at_databases(config, logger); code != ExitCode::ok) return code;
  return run_pipelines(config, config_path(file), logger);
}

}  // namespace

void declare_run(CLI::App& app, Action& chosen) {
  auto file = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "run", "Relay until SIGTERM or SIGINT; a second one ends it at once, SIGHUP reads the file again");
  declare_config_file(*command, *file);
  command->callback([file, &chosen] { chosen = [file] { return run(*file); }; });
}

}  // namespace outbox::commands
