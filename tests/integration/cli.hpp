#pragma once
// The real outboxd in tests: a configuration file, a call, what it answered.

#include <string>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace outbox::test {

/// A folder with an outboxd.yaml in it.
class CliFolder {
 public:
  CliFolder() = default;
  explicit CliFolder(std::string_view yaml) { write_file(folder_ / "outboxd.yaml", yaml); }
  [[nodiscard]] std::string file(std::string_view name = "outboxd.yaml") const {
    return (folder_ / name).string();
  }
  void write(std::string_view name, std::string_view content) const { write_file(folder_ / name, content); }

  /// Runs `outboxd args…` here, to its end.
  [[nodiscard]] Finished outboxd(std::vector<std::string> args) const {
    ProcessOptions options;
    options.args = std::move(args);
    options.folder = folder_.path();
    options.env = {{"NO_COLOR", "1"}};
    return run_program(OUTBOXD_PROGRAM, std::move(options));
  }

 private:
  TemporaryDirectory folder_{"outbox-cli"};
};

inline std::string one_pipeline(const std::string& uri, const std::string& more = "") {
  return "pipelines:\n  - name: payments\n    postgres: { uri: \"" + uri + "\" }\n" + more +
         "    kafka: { bootstrap.servers: \"127.0.0.1:9\" }\n";
}

}  // namespace outbox::test
