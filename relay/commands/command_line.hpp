#pragma once
// From argv to the one thing to do. Every command is declared in its own file; declaring parses nothing and
// does nothing, the chosen command's action runs when main() calls it. Thread: main.

#include <functional>
#include <string>

#include "relay/commands/exit_code.hpp"

namespace CLI {
class App;
}

namespace outbox::commands {

using Action = std::function<ExitCode()>;

/// Shape: what to do. `--help`, `--version` and mistakes are actions too: they print and answer ok or usage.
[[nodiscard]] Action read_command_line(int argc, const char* const* argv);

// Each adds its subcommand to `app` and, when that is chosen, puts its action into `chosen`, which outlives
// `app`'s parse.
void declare_run(CLI::App& app, Action& chosen);
void declare_migrate(CLI::App& app, Action& chosen);
void declare_config(CLI::App& app, Action& chosen);
void declare_status(CLI::App& app, Action& chosen);
void declare_check(CLI::App& app, Action& chosen);
void declare_consumer(CLI::App& app, Action& chosen);
void declare_pause(CLI::App& app, Action& chosen);
void declare_replay(CLI::App& app, Action& chosen);
void declare_reconcile(CLI::App& app, Action& chosen);
void declare_purge(CLI::App& app, Action& chosen);
void declare_dead(CLI::App& app, Action& chosen);
void declare_ledger(CLI::App& app, Action& chosen);
void declare_demo(CLI::App& app, Action& chosen);
void declare_manual(CLI::App& app, Action& chosen);
void declare_version(CLI::App& app, Action& chosen);

/// `-c,--config FILE` of a command.
void declare_config_file(CLI::App& command, std::string& file);
/// `--pipeline NAME` of a command that works on one, or on all where it is empty.
void declare_pipeline(CLI::App& command, std::string& name);

}  // namespace outbox::commands
