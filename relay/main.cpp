// outboxd: one binary; `run` is the daemon, the other commands are the operator's tools. Each command's boot
// order is in its file of relay/commands.

#include <csignal>
#include <cstdio>
#include <exception>

#include "relay/commands/command_line.hpp"

#ifdef OUTBOX_JEMALLOC
// Read by jemalloc before main(): few arenas, since memory is a bar of ours.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "narenas:2";
}
#endif

int main(int argc, char** argv) try {
  std::signal(SIGPIPE, SIG_IGN);  // a peer that goes away is an error to read, not an end
  const auto action = outbox::commands::read_command_line(argc, argv);
  return static_cast<int>(action());
} catch (const std::exception& e) {
  std::fprintf(stderr, "outboxd: %s\n", e.what());
  return static_cast<int>(outbox::commands::ExitCode::failed);
}
