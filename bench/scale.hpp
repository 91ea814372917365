#pragma once
// Whether two instances on two databases do twice the work of one: nothing that they share should be in the
// way but the machine. Twice over: as fast as the machine goes, where processors decide, and with each
// database so far away, behind so narrow a line, that the line does.

#include "bench/figures.hpp"
#include "bench/options.hpp"
#include "bench/stage.hpp"

namespace bench {

/// scale_… and far_…: a drain by one relay, then one by two, each of its own database, on the same server and
/// cluster.
void measure_scale(Stage& stage, const Options& options, Figures& figures);

}  // namespace bench
