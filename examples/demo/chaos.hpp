#pragma once
// When the demo strikes. Strikes are spread over the work, by how far it is, so that each hits a program that
// is busy.

#include <cstdint>
#include <string_view>
#include <vector>

#include "examples/demo/options.hpp"
#include "examples/demo/progress.hpp"

namespace demo {

enum class Blow { kill_relay, kill_ledger, resend };

struct Strike {
  Blow blow;
  std::int64_t due;  ///< relay and resend: messages sent; ledger: messages applied
};

/// Every strike of a run, in the order in which they fall due, with some jitter from the seed.
[[nodiscard]] std::vector<Strike> plan_strikes(const DemoOptions& options);

[[nodiscard]] bool is_due(const Strike& strike, const Progress& progress);

inline constexpr int resend_portions = 4;

}  // namespace demo
