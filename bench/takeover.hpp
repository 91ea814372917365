#pragma once
// How soon another instance does the work of one that is gone.

#include "bench/figures.hpp"
#include "bench/options.hpp"
#include "bench/stage.hpp"

namespace bench {

/// takeover_kill_s and takeover_term_s: of two instances that share the lanes one is killed, or told to stop,
/// and at that moment rows of every lane are inserted; until the last of them is marked.
void measure_takeover(Stage& stage, const Options& options, Figures& figures);

}  // namespace bench
