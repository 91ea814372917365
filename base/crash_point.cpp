#include "base/crash_point.hpp"

#ifdef OUTBOX_CRASH_POINTS

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/check.hpp"

namespace outbox {
namespace {

enum class Action { exit, sleep, error };

struct Wanted {
  CrashPoint point{};
  int pass = 1;
  Action action = Action::exit;
  std::chrono::milliseconds time{0};
};

// The part of `text` up to `separator`, which is taken off it.
std::string_view take_until(std::string_view& text, char separator) {
  const auto at = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

int number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  OUTBOX_CHECK(
      error == std::errc{} && end == text.data() + text.size() && number > 0,
      "OUTBOX_CRASH_AT is NAME[:PASS[:exit|error|sleep=MILLISECONDS]],… as base/crash_point.hpp says");
  return number;
}

Wanted read_one(std::string_view text) {
  const std::string_view name = take_until(text, ':');
  const std::string_view pass = take_until(text, ':');
  const auto found = std::ranges::find(crash_points, name, &CrashPointRow::name);
  OUTBOX_CHECK(found != crash_points.end(), "OUTBOX_CRASH_AT names a crash point of base/crash_point.hpp");
  Wanted out{.point = found->point};
  if (!pass.empty()) out.pass = number_of(pass);
  if (text == "error") {
    out.action = Action::error;
  } else if (text.starts_with("sleep=")) {
    out.action = Action::sleep;
    out.time = std::chrono::milliseconds{number_of(text.substr(6))};
  } else {
    OUTBOX_CHECK(text.empty() || text == "exit", "OUTBOX_CRASH_AT knows exit, error and sleep=MILLISECONDS");
  }
  return out;
}

std::vector<Wanted> read_environment() {
  const char* set = std::getenv("OUTBOX_CRASH_AT");
  std::string_view text = set != nullptr ? set : "";
  std::vector<Wanted> out;
  while (!text.empty()) out.push_back(read_one(take_until(text, ',')));
  return out;
}

}  // namespace

bool fails_here(CrashPoint point) noexcept {
  static const std::vector<Wanted> wanted = read_environment();
  static std::array<std::atomic<int>, crash_points.size()> passes{};
  if (wanted.empty()) return false;
  const int pass = ++passes.at(static_cast<std::size_t>(point));
  for (const Wanted& one : wanted) {
    if (one.point != point || one.pass != pass) continue;
    if (one.action == Action::exit) std::raise(SIGKILL);
    if (one.action == Action::error) return true;
    std::this_thread::sleep_for(one.time);
  }
  return false;
}

}  // namespace outbox

#endif
