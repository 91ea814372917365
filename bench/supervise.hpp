#pragma once
// Servers that are gone with the run, however it ends.

#include "bench/options.hpp"

namespace bench {

/// Starts the servers that `options` does not name, runs this program again with their addresses, and stops
/// them when it ended or when SIGINT or SIGTERM came. Call it before any thread is made. Returns the exit
/// code: the run's, or 128 and the signal's number.
[[nodiscard]] int run_beside_servers(const Options& options, int argc, char** argv);

}  // namespace bench
