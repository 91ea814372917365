#pragma once
// The real `outboxd run` on one database, and what the kernel counts of it. Gone with this object.

#include <memory>
#include <string>

#include "bench/stage.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace bench {

struct RelayOptions {
  std::string after_sent = "mark";
  std::string mode = "notify";
  std::string kafka_properties{};  ///< further lines under `kafka:`, in the flow form ", name: value"
  std::string postgres{};          ///< a uri that leads to the database; empty: the stage's
  std::string pipeline{};          ///< further lines of the pipeline, each "    name: …\n"
};

class Relay {
 public:
  /// Returns when the lanes are taken: its first claim follows. Every option that
  /// RelayOptions does not name is at its default.
  Relay(Stage& stage, const std::string& database, const RelayOptions& options = {});

  [[nodiscard]] double cpu_seconds() const;   ///< user and system, since it started
  [[nodiscard]] double rss_peak_mib() const;  ///< VmHWM
  /// A sample of its /metrics: "name{labels}".
  [[nodiscard]] double metric(const std::string& sample) const;
  /// Throws, with what it wrote last, where it has ended.
  void check();
  void signal(int number);
  void stop();  ///< SIGTERM; it must exit with 0

 private:
  [[nodiscard]] std::string admin() const;  ///< its socket

  outbox::test::TemporaryDirectory folder_{"outbox-bench"};
  std::unique_ptr<outbox::test::Process> process_;
};

/// The outboxd beside this program.
[[nodiscard]] std::string outboxd_program();

}  // namespace bench
