#pragma once
// The demo as a whole: sets the stage, lets the programs run, strikes, waits until all is applied, and proves
// it.

#include "examples/demo/options.hpp"

namespace demo {

/// Returns the exit code: 0 only if the proof holds. Errors: std::runtime_error where something could not be
/// started or made no progress.
[[nodiscard]] int conduct(const DemoOptions& options);

}  // namespace demo
