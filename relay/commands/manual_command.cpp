// `outboxd manual` and `outboxd completion SHELL`: what packages install beside the program.

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "relay/commands/command_line.hpp"
#include "relay/commands/command_manual.hpp"

namespace outbox::commands {
namespace {

// Made while the command line is parsed, since what it describes is gone after it.
Action print(std::string text) {
  return [text = std::move(text)] {
    return std::fputs(text.c_str(), stdout) < 0 ? ExitCode::failed : ExitCode::ok;
  };
}

}  // namespace

void declare_manual(CLI::App& app, Action& chosen) {
  app.add_subcommand("manual", "Print the man page outboxd(1), as roff")->callback([&app, &chosen] {
    chosen = print(man_page(app, OUTBOX_VERSION));
  });
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print the completions for a shell");
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, shell, &chosen] { chosen = print(completion(app, *shell)); });
}

}  // namespace outbox::commands
