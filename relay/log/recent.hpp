#pragma once
// The last lines that were logged as a warning or an error, for the status page, and how many there were.
// Bounded. Thread: any.

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "relay/log/log.hpp"

namespace outbox::log {

struct RecentLine {
  WallTime at{};
  Level level = Level::info;
  std::string line{};
};

class Recent {
 public:
  explicit Recent(std::size_t lines_max) : lines_max_(lines_max) {}

  void add(Level level, const std::string& line, WallTime now);
  /// The newest first.
  [[nodiscard]] std::vector<RecentLine> lines() const;
  [[nodiscard]] std::int64_t warnings() const;
  [[nodiscard]] std::int64_t errors() const;

 private:
  mutable std::mutex mutex_;
  std::size_t lines_max_;
  std::deque<RecentLine> lines_;
  std::int64_t warnings_ = 0;
  std::int64_t errors_ = 0;
};

}  // namespace outbox::log
