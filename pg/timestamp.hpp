#pragma once
// timestamptz on the wire, in both forms. PostgreSQL's infinity and -infinity are WallTime::max() and
// WallTime::min().

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.hpp"

namespace outbox::pg {

/// Microseconds since 2000-01-01 UTC, or int64's limits for the infinities.
[[nodiscard]] std::int64_t timestamp_to_wire(WallTime t);
[[nodiscard]] WallTime timestamp_from_wire(std::int64_t micros);

/// The ISO form, in whatever zone the session has: "2026-11-29 22:29:37.5+05:30". Anything else, and years
/// BC: nullopt.
[[nodiscard]] std::optional<WallTime> parse_timestamp(std::string_view text);

}  // namespace outbox::pg
