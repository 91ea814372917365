#include "relay/commands/boot.hpp"

#include <librdkafka/rdkafka.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <random>

#include "pg/identifier.hpp"
#include "pg/session.hpp"
#include "relay/commands/configured.hpp"
#include "relay/core/kafka/version.hpp"
#include "relay/postgres/source_facts.hpp"

namespace outbox::commands {
namespace {

static_assert(static_cast<int>(config::LogLevel::error) == static_cast<int>(log::Level::error));
static_assert(static_cast<int>(config::LogFormat::json) == static_cast<int>(log::Format::json));

Result<relay::SourceFacts> look_at(const config::Pipeline& pipeline) {
  const auto table = pg::parse_table_name(pipeline.source.table);
  if (!table) return failure(table.error());
  pg::ConnectOptions connect;
  connect.uri = pipeline.postgres.uri;
  connect.application_name = "outboxd " + pipeline.name;
  auto session = pg::Session::connect(connect);
  if (!session) return failure(std::move(session.error()));
  return relay::inspect(*session, *table, partition_column_of(pipeline));
}

}  // namespace

std::string fresh_instance() {
  std::array<char, 64> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  std::array<char, 32> tail{};
  std::snprintf(tail.data(), tail.size(), ":%d-%08x", ::getpid(), std::random_device{}());
  return std::string(host.data()) + tail.data();
}

log::Logger open_log(const config::Log& wanted) {
  return log::to_stderr(static_cast<log::Level>(wanted.level), static_cast<log::Format>(wanted.format));
}

ExitCode look_at_librdkafka(const log::Logger& logger) {
  const auto verdict = relay::judge_kafka_version(rd_kafka_version());
  if (!verdict.refused) return ExitCode::ok;
  logger.error("librdkafka_refused", {{"version", rd_kafka_version_str()}, {"why", verdict.text()}});
  return ExitCode::refused;
}

ExitCode look_at_databases(const config::Config& config, const log::Logger& logger) {
  ExitCode code = ExitCode::ok;
  for (const auto& pipeline : config.pipelines) {
    const auto facts = look_at(pipeline);
    const log::Logger named = logger.with("pipeline", pipeline.name);
    if (facts) {
      named.info("database_fit", {{"table", pipeline.source.table}, {"server", facts->server}});
    } else if (exit_code_of(facts.error()) == ExitCode::unreachable) {
      named.warn("database_unreachable", {{"error", facts.error().text()}, {"next", "waiting for it"}});
    } else {
      named.error("database_refused", {{"error", facts.error().text()}});
      code = worse(code, exit_code_of(facts.error()));
    }
  }
  return code;
}

}  // namespace outbox::commands
