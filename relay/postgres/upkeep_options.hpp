#pragma once
// What the upkeep of an outbox table does and what it tells. Plain values.

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.hpp"
#include "relay/core/types.hpp"

namespace outbox::relay {

struct UpkeepNote {
  enum class Event {
    partitions_made,  ///< `rows`: how many
    day_dropped,
    day_kept,       ///< told once a day of the table: a row of it is pending, held or dead
    rows_deleted,   ///< `rows` of a table without days, or of the DEFAULT partition
    default_used,   ///< `rows` are in the DEFAULT partition, the first time or more than before
    default_empty,  ///< no longer
    default_large,  ///< days ahead are not made, since each reads the DEFAULT partition whole
    busy,           ///< a lock could not be had in time; soon again
    failed,         ///< `why`; soon again
  };
  Event event;
  std::string table;  ///< quoted; empty where it is about no one table
  std::int64_t rows = 0;
  std::string why;
};

/// Totals since the start; 0 in an instance that never had lane 0.
struct UpkeepFigures {
  std::int64_t partitions_made = 0;
  std::int64_t days_dropped = 0;
  std::int64_t rows_deleted = 0;
  std::int64_t put_off = 0;  ///< a lock could not be had in time
  std::int64_t failed = 0;
};

struct UpkeepOptions {
  int partitions_ahead = 7;  ///< days; 0: somebody else makes them
  OldRows old_rows = OldRows::remove;
  Millis replay_window = std::chrono::days{7};
  Millis every = std::chrono::hours{1};
  std::int64_t default_bytes_max = 64 << 20;  ///< beyond it no day is made; reading it takes half a second
  std::int64_t erase_blocks = 1000;           ///< of one deletion
  Millis erase_pause{50};                     ///< between two, so that it takes no more than its share
  std::function<void(const UpkeepNote&)> on_note{};  ///< on the loop's thread
};

}  // namespace outbox::relay
