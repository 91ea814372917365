// `outboxd demo`: becomes the program outbox-demo, which is beside this one or in ../libexec/outbox.

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "relay/commands/command_line.hpp"

namespace outbox::commands {
namespace {

constexpr const char* program = "outbox-demo";

std::vector<std::filesystem::path> places() {
  std::error_code none;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  return {folder / program, folder.parent_path() / "libexec" / "outbox" / program};
}

ExitCode become_demo(std::vector<std::string> args) {
  for (const auto& path : places()) {
    if (::access(path.c_str(), X_OK) != 0) continue;
    args.insert(args.begin(), program);
    std::vector<char*> argv;
    argv.reserve(args.size() + 1);
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    ::execv(path.c_str(), argv.data());
    std::fprintf(stderr, "outboxd: %s cannot be started: %s\n", path.c_str(), std::strerror(errno));
    return ExitCode::failed;
  }
  std::string looked;
  for (const auto& path : places()) looked += (looked.empty() ? "" : " or ") + path.string();
  std::fprintf(stderr, "outboxd: the demo is not installed: there is no %s\n", looked.c_str());
  return ExitCode::failed;
}

}  // namespace

void declare_demo(CLI::App& app, Action& chosen) {
  CLI::App* command =
      app.add_subcommand("demo", "Run the main job on a throwaway PostgreSQL and Kafka, and prove it");
  command->prefix_command();
  command->set_help_flag();  // --help goes to the demo as well
  command->callback(
      [command, &chosen] { chosen = [args = command->remaining()] { return become_demo(args); }; });
}

}  // namespace outbox::commands
