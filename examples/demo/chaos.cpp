#include "examples/demo/chaos.hpp"

#include <algorithm>
#include <random>

namespace demo {

std::vector<Strike> plan_strikes(const DemoOptions& options) {
  std::mt19937_64 random(options.seed);
  const double messages =
      2.0 * 0.9 * options.transfers;  // a few transfers roll back, and all strikes must fall
  std::vector<Strike> strikes;
  const auto spread = [&](Blow blow, int count) {
    for (int i = 1; i <= count; ++i) {
      const double share = (i - std::uniform_real_distribution(0.0, 0.6)(random)) / count;
      strikes.push_back({blow, static_cast<std::int64_t>(share * 0.95 * messages)});
    }
  };
  spread(Blow::kill_relay, options.relay_kills);
  spread(Blow::kill_ledger, options.ledger_kills);
  if (options.resends > 0) spread(Blow::resend, resend_portions);
  std::ranges::sort(strikes, {}, &Strike::due);
  return strikes;
}

bool is_due(const Strike& strike, const Progress& progress) {
  return (strike.blow == Blow::kill_ledger ? progress.applied : progress.sent) >= strike.due;
}

}  // namespace demo
