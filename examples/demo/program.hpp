#pragma once
// A program that the demo runs, kills and starts again. Each life writes to files of its own.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace demo {

class Program {
 public:
  Program(std::string name, std::string path, std::vector<std::string> args, std::filesystem::path folder);

  void start();
  void kill();  ///< SIGKILL; counted
  void
  stop();  ///< SIGTERM, and waits. Errors: std::runtime_error where it does not end in time or not with 0
  /// Errors: std::runtime_error, with the end of what it wrote, where it ended by itself with anything but 0.
  [[nodiscard]] bool running();

  [[nodiscard]] int kills() const { return kills_; }
  /// The number after `word` in the last line of standard output that starts with it, summed over all lives.
  [[nodiscard]] long long sum_of(const std::string& word) const;

 private:
  [[nodiscard]] std::filesystem::path file(int life, const char* stream) const;
  [[noreturn]] void fail(const outbox::test::ExitStatus& status) const;

  std::string name_;
  std::string path_;
  std::vector<std::string> args_;
  std::filesystem::path folder_;
  std::unique_ptr<outbox::test::Process> process_;
  int lives_ = 0;
  int kills_ = 0;
};

}  // namespace demo
