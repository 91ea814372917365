#pragma once
// What an old snapshot costs: an idle transaction elsewhere keeps the index entries of marked rows from being
// cleaned away, and a poll that read them all would be slower with each row that passes.

#include "bench/figures.hpp"
#include "bench/options.hpp"
#include "bench/stage.hpp"

namespace bench {

/// claim_us, claim_beside_long_transaction_us and long_transaction_poll_ratio: mean claims of two running
/// relays in the same seconds, of which one works beside an idle REPEATABLE READ transaction.
void measure_long_transaction(Stage& stage, const Options& options, Figures& figures);

}  // namespace bench
