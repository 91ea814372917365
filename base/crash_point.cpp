#include "base/crash_point.hpp"

#ifdef OUTBOX_CRASH_POINTS

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>

#include "base/check.hpp"

namespace outbox {
namespace {

struct Wanted {
  const CrashPointRow* row = nullptr;
  int pass = 1;
};

Wanted read_environment() {
  const char* set = std::getenv("OUTBOX_CRASH_AT");
  std::string_view text = set ? set : "";
  if (text.empty()) return {};
  Wanted out;
  if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), out.pass);
    text = text.substr(0, colon);
  }
  const auto found = std::ranges::find(crash_points, text, &CrashPointRow::name);
  OUTBOX_CHECK(found != crash_points.end(), "OUTBOX_CRASH_AT names a crash point of base/crash_point.hpp");
  out.row = &*found;
  return out;
}

}  // namespace

void crash_here(CrashPoint point) noexcept {
  static const Wanted wanted = read_environment();
  static std::atomic<int> passes{0};
  if (!wanted.row || wanted.row->point != point) return;
  if (++passes == wanted.pass) std::raise(SIGKILL);
}

}  // namespace outbox

#endif
