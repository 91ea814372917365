#include "base/clock.hpp"

#include <array>
#include <cstdio>

namespace outbox {

std::string rfc3339(WallTime t) {
  const auto day = std::chrono::floor<std::chrono::days>(t);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{t - day};
  std::array<char, 40> out{};
  const int n =
      std::snprintf(out.data(), out.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", int(date.year()),
                    unsigned(date.month()), unsigned(date.day()), int(time.hours().count()),
                    int(time.minutes().count()), int(time.seconds().count()), int(time.subseconds().count()));
  return {out.data(), static_cast<std::size_t>(n)};
}

}  // namespace outbox
