#pragma once
// The memory of a relay that drains rows of 1 MB.

#include "bench/figures.hpp"
#include "bench/options.hpp"
#include "bench/stage.hpp"

namespace bench {

/// rss_large_rows_mib and drain_large_rows_mb_per_s. Needs 2 MB of disk a row, and as much again for the log.
void measure_large_rows(Stage& stage, const Options& options, Figures& figures);

}  // namespace bench
