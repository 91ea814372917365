#include "examples/demo/view.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace demo {
namespace {

constexpr auto plain_interval = std::chrono::seconds(1);

std::string bar(std::int64_t part, std::int64_t whole) {
  constexpr std::int64_t width = 24;
  const auto full =
      static_cast<std::size_t>(whole <= 0 ? 0 : std::clamp(part * width / whole, std::int64_t{0}, width));
  return "[" + std::string(full, '#') + std::string(static_cast<std::size_t>(width) - full, '.') + "]";
}

}  // namespace

std::string grouped(std::int64_t n) {
  std::string digits = std::to_string(n);
  for (auto at = static_cast<std::int64_t>(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

View::View() : terminal_(::isatty(STDOUT_FILENO) == 1 && std::getenv("TERM") != nullptr) {}

View::~View() {
  if (terminal_) std::fputs("\r\033[K", stdout);
  std::fflush(stdout);
}

double View::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void View::say(const std::string& text) {
  std::printf("%s%6.1f s  %s\n", terminal_ ? "\r\033[K" : "", seconds(), text.c_str());
  std::fflush(stdout);
}

void View::show(const Progress& p, std::int64_t expected) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ && now - shown_ < plain_interval) return;
  shown_ = now;
  std::printf("%s%6.1f s  %s produced %s  sent %s  applied %s  refused %s  lag %s%s",
              terminal_ ? "\r\033[K" : "", seconds(), bar(p.applied, expected).c_str(),
              grouped(p.produced).c_str(), grouped(p.sent).c_str(), grouped(p.applied).c_str(),
              grouped(p.refused).c_str(), grouped(p.lag()).c_str(), terminal_ ? "" : "\n");
  std::fflush(stdout);
}

}  // namespace demo
