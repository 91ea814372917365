#pragma once
// PostgreSQL alone: select and mark in one plain loop by libpq, on the migrated table, with the batch size,
// the addressing and the mark statement of the relay. The limit of the database's side.

#include <string>

#include "bench/stage.hpp"

namespace bench {

enum class Select {
  relays,  ///< the relay's own claim statement
  plain,   ///< the same columns and index, without holds, byte budget and headers as pairs
};

/// Rows a second from the first select to the last commit; `connections` loops side by side share the lanes.
[[nodiscard]] double mark_rate(const Stage& stage, const std::string& database, Select select,
                               int connections);

}  // namespace bench
