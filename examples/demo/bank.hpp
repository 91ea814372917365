#pragma once
// The payment core: accounts, and transfers between them from several connections at once. Each transfer is
// one transaction that moves the money and inserts the two messages which tell of it.

#include "examples/demo/options.hpp"
#include "pg/session.hpp"

namespace demo {

/// Each account's opening balance, in cents.
inline constexpr std::int64_t opening_balance = 500'000;

/// Makes the bank's tables and its login role `bank`, which may insert messages and nothing else of the
/// outbox.
void open_bank(outbox::pg::Session& owner, int accounts);

/// The role `outbox-demo core`: makes every transfer, then returns. Errors: std::runtime_error.
void run_core(const CoreOptions& options);

}  // namespace demo
