#pragma once
// What mode notify costs the business: its commits beside those of an outbox whose relay polls.

#include "bench/figures.hpp"
#include "bench/options.hpp"
#include "bench/stage.hpp"

namespace bench {

/// poll_commit_p99_ms, notify_commit_p99_ms and notify_commit_p99_ratio: inserts of one row a transaction,
/// 2,000 a second, by turns in two databases whose relays run in the one mode and in the other.
void measure_notify_cost(Stage& stage, const Options& options, Figures& figures);

}  // namespace bench
