#pragma once
// How far the messages are, from the two databases and the ledger's own count.

#include <cstdint>

#include "pg/session.hpp"

namespace demo {

struct Progress {
  std::int64_t produced = 0;  ///< messages committed by the payment core
  std::int64_t sent = 0;      ///< of these, marked as SENT
  std::int64_t applied = 0;   ///< of these, in effect at the ledger
  std::int64_t refused = 0;   ///< copies that the ledger refused
  [[nodiscard]] std::int64_t lag() const { return produced - applied; }
  friend bool operator==(const Progress&, const Progress&) = default;
};

/// Shape: `refused` is left at 0. Errors: std::runtime_error.
[[nodiscard]] Progress look(outbox::pg::Session& bank, outbox::pg::Session& ledger);

/// Sets `count` rows that were sent to be sent again, as an operator's replay would. Returns how many it
/// found.
std::int64_t send_again(outbox::pg::Session& bank, int count);

}  // namespace demo
