#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

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

// syslog's numbers, by the level that spdlog hands on.
class Priority : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const char* text = message.level >= spdlog::level::err    ? "<3>"
                       : message.level == spdlog::level::warn ? "<4>"
                       : message.level == spdlog::level::info ? "<6>"
                                                              : "<7>";
    out.append(text, text + 3);
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<Priority>();
  }
};

}  // namespace

bool stderr_is_journal() {
  const char* named = std::getenv("JOURNAL_STREAM");
  struct stat found {};
  if (named == nullptr || ::fstat(STDERR_FILENO, &found) != 0) return false;
  return named == std::to_string(found.st_dev) + ":" + std::to_string(found.st_ino);
}

Logger to_stderr(Level lowest, Format format) {
  const auto colours = format == Format::text ? spdlog::color_mode::automatic : spdlog::color_mode::never;
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(colours);
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  const std::string pattern = format == Format::text ? text_pattern : json_pattern;
  formatter->add_flag<Priority>('P').set_pattern(stderr_is_journal() ? "%P" + pattern : pattern);
  sink->set_formatter(std::move(formatter));
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
