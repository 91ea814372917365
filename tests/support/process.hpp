#pragma once
// A program that a test runs: the real outboxd, a server, a tool. It gets a process group of its own; the
// destructor kills what is left of that group, and the kernel does where the test itself dies.

#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/eventually.hpp"
#include "tests/support/temporary_directory.hpp"

namespace outbox::test {

struct ExitStatus {
  int code = -1;   ///< where it exited
  int signal = 0;  ///< where a signal ended it
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

struct ProcessOptions {
  std::vector<std::string> args{};           ///< without the program's own name
  std::map<std::string, std::string> env{};  ///< added to this process's environment
  std::filesystem::path folder{};            ///< to start in; empty: this process's
  std::filesystem::path output{};            ///< standard output goes to this file; empty: a temporary one
  std::filesystem::path errors{};            ///< standard error, likewise
  std::optional<std::pair<uid_t, gid_t>> user{};  ///< to become before it starts
  int death_signal = SIGKILL;                     ///< sent to it when this process dies
};

class Process {
 public:
  /// Starts it. `program`: a path, or a name looked for in PATH. Throws where it can't be started.
  explicit Process(const std::string& program, ProcessOptions options = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running();
  /// To the program alone, or, with SIGKILL, to its group. Nothing happens once it has ended.
  void kill(int signal = SIGKILL);
  /// Blocks until it has ended. Throws, with the end of its standard error, where it has not within
  /// `deadline`.
  ExitStatus wait(Millis deadline = patience);

  [[nodiscard]] std::string output() const { return read_file(output_); }
  [[nodiscard]] std::string errors() const { return read_file(errors_); }

 private:
  TemporaryDirectory folder_;
  std::filesystem::path output_;
  std::filesystem::path errors_;
  pid_t pid_ = -1;
  std::optional<ExitStatus> ended_;
};

struct Finished {
  ExitStatus status;
  std::string output;
  std::string errors;
};
/// Runs a program to its end.
[[nodiscard]] Finished run_program(const std::string& program, ProcessOptions options = {},
                                   Millis deadline = patience);

}  // namespace outbox::test
