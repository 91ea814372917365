// `outboxd version`: what was built, and what it runs with.

#include <CLI/CLI.hpp>
#include <boost/version.hpp>
#include <librdkafka/rdkafka.h>
#include <spdlog/version.h>

#include <cstdio>
#include <string>

#include "pg/session.hpp"
#include "relay/commands/command_line.hpp"

namespace outbox::commands {
namespace {

// RD_KAFKA_VERSION is 0xMMmmrrpp.
std::string rdkafka_version(int number) {
  return std::to_string(number >> 24) + "." + std::to_string((number >> 16) & 0xff) + "." +
         std::to_string((number >> 8) & 0xff);
}

std::string spdlog_version() {
  return std::to_string(SPDLOG_VER_MAJOR) + "." + std::to_string(SPDLOG_VER_MINOR) + "." +
         std::to_string(SPDLOG_VER_PATCH);
}

std::string version_text() {
  std::string out = "outboxd " OUTBOX_VERSION "\n";
  out += "libpq " + pg::libpq_version() + "\n";
  out += "librdkafka " + std::string(rd_kafka_version_str()) + " (built with " +
         rdkafka_version(RD_KAFKA_VERSION) + ")\n";
  out += "yaml-cpp " OUTBOX_YAML_CPP_VERSION "\n";
  out += "spdlog " + spdlog_version() + "\n";
  out += "Boost " + std::to_string(BOOST_VERSION / 100000) + "." +
         std::to_string(BOOST_VERSION / 100 % 1000) + "." + std::to_string(BOOST_VERSION % 100) + "\n";
  out += "compiler " __VERSION__ "\n";
  return out;
}

}  // namespace

void declare_version(CLI::App& app, Action& chosen) {
  app.add_flag_callback(
      "--version", [] { throw CLI::CallForVersion(version_text(), 0); }, "As the command version");
  app.add_subcommand("version", "Print the versions of outboxd and its libraries")->callback([&chosen] {
    chosen = [] { return std::fputs(version_text().c_str(), stdout) < 0 ? ExitCode::failed : ExitCode::ok; };
  });
}

}  // namespace outbox::commands
