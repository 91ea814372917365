#include "relay/log/log.hpp"

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "relay/log/line.hpp"

namespace outbox::log {

struct Logger::Limiter {
  Limiter(RepeatLimits limits, std::function<MonoTime()> clock) : now(std::move(clock)), repeats(limits) {}
  const std::function<MonoTime()> now;
  std::mutex mutex;
  Repeats repeats;
};

struct Logger::State {
  std::shared_ptr<std::atomic<Level>> lowest;
  Format format;
  Write write;
  std::vector<std::pair<std::string, std::string>> bound;
  std::shared_ptr<Limiter> limiter{};
};

std::string_view to_string(Level level) noexcept {
  switch (level) {
    case Level::debug:
      return "debug";
    case Level::info:
      return "info";
    case Level::warn:
      return "warn";
    case Level::error:
      return "error";
  }
  return "unknown";
}

Logger::Logger(Level lowest, Format format, Write write)
    : state_(std::make_shared<const State>(
          State{std::make_shared<std::atomic<Level>>(lowest), format, std::move(write), {}, {}})) {}

Logger Logger::with(std::string name, std::string value) const {
  if (!state_) return {};
  State more = *state_;
  more.bound.emplace_back(std::move(name), std::move(value));
  Logger out;
  out.state_ = std::make_shared<const State>(std::move(more));
  return out;
}

Logger Logger::copied_to(Write also) const {
  if (!state_) return {};
  State more = *state_;
  more.write = [first = state_->write, also = std::move(also)](Level level, const std::string& line) {
    first(level, line);
    also(level, line);
  };
  Logger out;
  out.state_ = std::make_shared<const State>(std::move(more));
  return out;
}

Logger Logger::limited(RepeatLimits limits, std::function<MonoTime()> now) const {
  if (!state_) return {};
  State more = *state_;
  more.limiter = std::make_shared<Limiter>(limits, std::move(now));
  Logger out;
  out.state_ = std::make_shared<const State>(std::move(more));
  return out;
}

void Logger::tell_repeats() const noexcept try {
  if (!state_ || !state_->limiter) return;
  std::vector<std::pair<std::string, std::int64_t>> ended;
  {
    const std::lock_guard lock(state_->limiter->mutex);
    ended = state_->limiter->repeats.ended(state_->limiter->now());
  }
  for (const auto& [event, count] : ended) warn("lines_left_out", {{"of", event}, {"count", count}});
} catch (...) {
}

void Logger::set_lowest(Level lowest) const noexcept {
  if (state_) state_->lowest->store(lowest, std::memory_order_relaxed);
}

bool Logger::writes(Level level) const noexcept {
  return state_ && level >= state_->lowest->load(std::memory_order_relaxed);
}

void Logger::write(Level level, std::string_view event, Fields fields) const noexcept try {
  if (!writes(level)) return;
  std::int64_t left_out = 0;
  if (level >= Level::warn && state_->limiter) {
    std::string name;  // each pipeline's floods are its own
    for (const auto& [_, value] : state_->bound) name.append(value).append(" ");
    const std::lock_guard lock(state_->limiter->mutex);
    const auto verdict = state_->limiter->repeats.seen(name.append(event), state_->limiter->now());
    if (!verdict.write) return;
    left_out = verdict.left_out;
  }
  std::vector<Field> all;
  all.reserve(state_->bound.size() + fields.size() + 1);
  for (const auto& [name, value] : state_->bound) all.push_back({name, value});
  all.insert(all.end(), fields.begin(), fields.end());
  if (left_out > 0) all.push_back({"left_out", left_out});
  state_->write(level, state_->format == Format::json ? json_members(event, all) : text_line(event, all));
} catch (...) {
  // Losing a line is better than losing the relay; memory pressure shows up elsewhere.
}

}  // namespace outbox::log
