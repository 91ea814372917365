#include "relay/log/recent.hpp"

namespace outbox::log {

void Recent::add(Level level, const std::string& line, WallTime now) {
  if (level < Level::warn) return;
  const std::lock_guard lock(mutex_);
  (level == Level::warn ? warnings_ : errors_) += 1;
  lines_.push_front({now, level, line});
  if (lines_.size() > lines_max_) lines_.pop_back();
}

std::vector<RecentLine> Recent::lines() const {
  const std::lock_guard lock(mutex_);
  return {lines_.begin(), lines_.end()};
}

std::int64_t Recent::warnings() const {
  const std::lock_guard lock(mutex_);
  return warnings_;
}

std::int64_t Recent::errors() const {
  const std::lock_guard lock(mutex_);
  return errors_;
}

}  // namespace outbox::log
