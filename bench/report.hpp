#pragma once
// The results: a table for people, JSON for programs, and the bars that each figure must meet.

#include <string>

#include "bench/figures.hpp"
#include "bench/options.hpp"
#include "bench/stage.hpp"

namespace bench {

/// Load averages and the like, as they were when the run began.
[[nodiscard]] std::string load_average();

/// Writes options.results and prints the table on standard output. Returns how many bars were missed, a
/// figure that is missing among them.
int report(const Stage& stage, const Options& options, const Figures& figures,
           const std::string& load_before);

}  // namespace bench
