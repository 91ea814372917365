#pragma once
// Two clocks that must not be mixed. MonoTime measures waits and leases inside one process and never jumps;
// WallTime is a moment in UTC with PostgreSQL's resolution. A lease is never judged by a process's WallTime.

#include <chrono>
#include <cstdint>
#include <string>

namespace outbox {

using MonoTime = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;
using Millis = std::chrono::milliseconds;
using Micros = std::chrono::microseconds;

/// "2026-11-29T16:05:00.123456Z": RFC 3339, UTC, always six digits.
[[nodiscard]] std::string rfc3339(WallTime t);

/// PostgreSQL's binary timestamptz: microseconds since 2000-01-01 UTC.
[[nodiscard]] constexpr WallTime from_postgres_micros(std::int64_t micros) {
  return WallTime{Micros{micros + 946'684'800'000'000}};
}
[[nodiscard]] constexpr std::int64_t to_postgres_micros(WallTime t) {
  return t.time_since_epoch().count() - 946'684'800'000'000;
}

}  // namespace outbox
