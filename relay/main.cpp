// outboxd: one binary; `run` is the daemon, the other commands are the operator's tools. Each command's boot
// order is in its file of relay/commands.

#include <csignal>
#include <cstdio>
#include <exception>

#include "relay/commands/command_line.hpp"

int main(int argc, char** argv) try {
  std::signal(SIGPIPE, SIG_IGN);  // a peer that goes away is an error to read, not an end
  const auto action = outbox::commands::read_command_line(argc, argv);
  return static_cast<int>(action());
} catch (const std::exception& e) {
  std::fprintf(stderr, "outboxd: %s\n", e.what());
  return static_cast<int>(outbox::commands::ExitCode::failed);
}
