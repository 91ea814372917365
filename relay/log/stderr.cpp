#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include "relay/log/log.hpp"

namespace outbox::log {
namespace {

constexpr const char* text_pattern = "%Y-%m-%dT%H:%M:%S.%fZ %^%l%$ %v";
constexpr const char* json_pattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})";

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warn:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

Logger to_stderr(Level lowest, Format format) {
  const auto colours = format == Format::text ? spdlog::color_mode::automatic : spdlog::color_mode::never;
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(colours);
  sink->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      format == Format::text ? text_pattern : json_pattern, spdlog::pattern_time_type::utc));
  auto logger = std::make_shared<spdlog::logger>("outboxd", std::move(sink));
  logger->set_level(spdlog::level::trace);
  logger->flush_on(spdlog::level::trace);
  // spdlog prints its own failures to standard error; a closed terminal must not end the relay.
  logger->set_error_handler([](const std::string&) {});
  return Logger(lowest, format, [logger](Level level, const std::string& line) {
    logger->log(spdlog_level(level), spdlog::string_view_t{line.data(), line.size()});
  });
}

}  // namespace outbox::log
