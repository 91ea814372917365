#pragma once
// The downstream service: keeps its own balances in its own database, from messages alone. Nothing here but
// the consumer library refuses a message that comes twice; the tables would take it.

#include "examples/demo/options.hpp"
#include "pg/session.hpp"

namespace demo {

/// Makes the ledger's tables and its login role `ledger`.
void open_ledger(outbox::pg::Session& owner, int accounts);

/// The consumer group of the ledger that reads `topic`.
[[nodiscard]] std::string ledger_group(const std::string& topic);

/// The role `outbox-demo ledger`: consumes until SIGTERM, and prints its counters as they change. It prints
/// "refused N": copies that the library refused in this life.
void run_ledger(const LedgerOptions& options);

}  // namespace demo
