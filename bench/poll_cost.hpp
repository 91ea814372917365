#pragma once
// What rows that were sent long ago cost each poll.

#include "bench/figures.hpp"
#include "bench/options.hpp"
#include "bench/stage.hpp"

namespace bench {

/// poll_empty_us, poll_sent_rows_us and sent_rows_poll_ratio: the relay's poll of a quiet table.
void measure_poll_cost(Stage& stage, const Options& options, Figures& figures);

}  // namespace bench
