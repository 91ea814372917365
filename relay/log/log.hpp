#pragma once
// The log, as the relay's shell and the commands see it: one INFO line per change of state, nothing per
// message.
//   logger.info("lease_taken", {{"lane", lane}, {"epoch", epoch}});
// Place: below shell, io and commands; knows none of them and shows no logging library. Lifecycle: main()
// makes the process's logger by to_stderr(); each pipeline gets its own by with(); a default-made Logger says
// nothing (simulation, unit tests). Thread: any; lines are whole.

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "relay/log/repeats.hpp"
#include "relay/log/value.hpp"

namespace outbox::log {

enum class Level { debug, info, warn, error };
enum class Format { text, json };

[[nodiscard]] std::string_view to_string(Level level) noexcept;

class Logger {
 public:
  /// Where lines go: `line` is whole, escaped and without a line end. Must not throw.
  using Write = std::function<void(Level level, const std::string& line)>;

  Logger() = default;
  Logger(Level lowest, Format format, Write write);

  /// The same log with one more field on every line, such as ("pipeline", "payments"). Both texts are copied.
  [[nodiscard]] Logger with(std::string name, std::string value) const;

  /// The same log, whose lines also go to `also`. It must not throw.
  [[nodiscard]] Logger copied_to(Write also) const;
  /// The same log, where a flood of one warning or error of a pipeline is cut after its first lines; the
  /// first line after it tells how many were left out (left_out=98). `now` must not throw.
  [[nodiscard]] Logger limited(RepeatLimits limits, std::function<MonoTime()> now) const;
  /// Floods that have ended without such a line: `lines_left_out of=message_dead count=98`. To be called now
  /// and then.
  void tell_repeats() const noexcept;
  /// From now on, for this log and every one made of it by with() and copied_to(), before or after.
  void set_lowest(Level lowest) const noexcept;

  using Fields = std::initializer_list<Field>;
  void debug(std::string_view event, Fields fields = {}) const noexcept {
    write(Level::debug, event, fields);
  }
  void info(std::string_view event, Fields fields = {}) const noexcept { write(Level::info, event, fields); }
  void warn(std::string_view event, Fields fields = {}) const noexcept { write(Level::warn, event, fields); }
  void error(std::string_view event, Fields fields = {}) const noexcept {
    write(Level::error, event, fields);
  }

  /// Errors: none: a line that cannot be written (no memory) is dropped, the relay goes on.
  void write(Level level, std::string_view event, Fields fields) const noexcept;
  [[nodiscard]] bool writes(Level level) const noexcept;

 private:
  struct State;
  struct Limiter;
  std::shared_ptr<const State> state_;
};

/// Whether standard error goes to systemd's journal: JOURNAL_STREAM names it. Source: systemd.exec(5).
[[nodiscard]] bool stderr_is_journal();

/// The process's log: standard error, "2026-11-29T16:05:00.123456Z INFO event name=value" in UTC, level in
/// colour on a terminal only; or one JSON object a line: {"time":…,"level":"info","event":…,…}.
/// Where that is the journal each line begins with its priority, "<4>", which the journal takes away.
/// Source: sd-daemon(3).
[[nodiscard]] Logger to_stderr(Level lowest, Format format);

}  // namespace outbox::log
