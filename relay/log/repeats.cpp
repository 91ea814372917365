#include "relay/log/repeats.hpp"

#include <algorithm>

namespace outbox::log {

std::int64_t Repeats::left_out(const Window& window) const {
  return std::max<std::int64_t>(0, window.lines - limits_.lines_max);
}

Repeats::Verdict Repeats::seen(std::string_view event, MonoTime now) {
  auto at = windows_.find(event);
  if (at == windows_.end()) {
    if (windows_.size() >= limits_.events_max) return {};
    at = windows_.emplace(std::string{event}, Window{now}).first;
  }
  Window& window = at->second;
  std::int64_t before = 0;
  if (now - window.began >= limits_.window) before = left_out(std::exchange(window, Window{now}));
  window.lines += 1;
  return {window.lines <= limits_.lines_max, before};
}

std::vector<std::pair<std::string, std::int64_t>> Repeats::ended(MonoTime now) {
  std::vector<std::pair<std::string, std::int64_t>> out;
  for (auto at = windows_.begin(); at != windows_.end();) {
    if (now - at->second.began < limits_.window) {
      ++at;
      continue;
    }
    if (const auto count = left_out(at->second); count > 0) out.emplace_back(at->first, count);
    at = windows_.erase(at);
  }
  return out;
}

}  // namespace outbox::log
