#pragma once
// From commit to consumer at a steady rate, beside the floor: the writer produces by itself after its commit,
// to the same kind of topic, for the same consumer.

#include "bench/figures.hpp"
#include "bench/options.hpp"
#include "bench/stage.hpp"

namespace bench {

/// latency_…, latency_floor_…, steady_cpu_percent and idle_cpu_percent.
void measure_latency(Stage& stage, const Options& options, Figures& figures);

}  // namespace bench
