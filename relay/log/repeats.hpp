#pragma once
// Which lines of a flood are written: the first few of an event in a window, and how many more there were.
// Pure; one thread.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace outbox::log {

struct RepeatLimits {
  std::int32_t lines_max = 10;   ///< of one event in one window
  Millis window{30'000};         ///< from its first line
  std::size_t events_max = 500;  ///< that are told apart; what comes beyond is written
};

class Repeats {
 public:
  explicit Repeats(RepeatLimits limits) : limits_(limits) {}

  struct Verdict {
    bool write = true;
    std::int64_t left_out = 0;  ///< of this event, in its window before; to be told with this line
  };
  [[nodiscard]] Verdict seen(std::string_view event, MonoTime now);
  /// Windows that are over and left lines out, each once: (event, how many).
  [[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> ended(MonoTime now);

 private:
  struct Window {
    MonoTime began{};
    std::int64_t lines = 0;
  };
  [[nodiscard]] std::int64_t left_out(const Window& window) const;

  RepeatLimits limits_;
  std::map<std::string, Window, std::less<>> windows_;
};

}  // namespace outbox::log
