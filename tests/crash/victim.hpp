#pragma once
// A program that a test kills and starts again. One thread at a time.

#include <memory>
#include <string>

#include "tests/support/process.hpp"

namespace outbox::test {

class Victim {
 public:
  /// Starts it.
  Victim(std::string program, ProcessOptions options);

  void start();
  /// SIGKILL, and waits until it is gone. Errors: std::runtime_error where it had ended by itself, with what
  /// it said.
  void kill();
  /// SIGTERM; it must end with 0. Errors: as kill().
  void stop();

  [[nodiscard]] int kills() const { return kills_; }

 private:
  void end(int signal, const ExitStatus& expected);

  std::string program_;
  ProcessOptions options_;
  std::unique_ptr<Process> process_;
  int kills_ = 0;
};

}  // namespace outbox::test
