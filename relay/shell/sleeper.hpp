#pragma once
// Tells the database while the relay sleeps, so that inserts notify only then. The flag expires by itself and
// is renewed at half of its time. It is set before the look that closes the race with a writer who read
// "awake"; what even that look misses, the poll finds.

#include "relay/shell/workbench.hpp"

namespace outbox::relay {

class Sleeper {
 public:
  explicit Sleeper(Workbench& bench) : bench_(bench) {}
  /// `may_sleep`: the lanes are leased and nothing is being drained.
  void pump(MonoTime now, bool may_sleep);
  [[nodiscard]] MonoTime wake_at() const { return wake_at_; }

 private:
  void declare(Millis time, MonoTime now);

  Workbench& bench_;
  bool declaring_ = false;
  MonoTime asleep_until_{};  // what the database was told
  MonoTime retry_at_{};
  MonoTime wake_at_ = MonoTime::max();
};

}  // namespace outbox::relay
