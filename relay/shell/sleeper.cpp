#include "relay/shell/sleeper.hpp"

#include <algorithm>

#include "base/crash_point.hpp"

namespace outbox::relay {
namespace {

constexpr Millis retry_pause{1000};

}  // namespace

void Sleeper::pump(MonoTime now, bool may_sleep) {
  wake_at_ = MonoTime::max();
  if (bench_.options.waking != Waking::notify || declaring_ || now < retry_at_) return;
  const Millis flag_time = std::max(Millis{10'000}, 4 * bench_.options.limits.poll_interval);
  const bool asleep = may_sleep && bench_.plan.asleep();
  if (asleep) {
    const MonoTime renew_at = asleep_until_ - flag_time / 2;
    if (now >= renew_at) return declare(flag_time, now);
    wake_at_ = renew_at;
  } else if (now < asleep_until_ && bench_.alone) {  // another's sleep is not ours to end: the flag runs out
    declare(Millis{0}, now);
  }
}

void Sleeper::declare(Millis time, MonoTime now) {
  declaring_ = true;
  bench_.source.declare_asleep(time, [this, time, now](Status status) {
    declaring_ = false;
    if (time.count() > 0) crash_here(CrashPoint::relay_asleep, status);
    if (status) {
      const bool fell_asleep = time.count() > 0 && asleep_until_ <= now;
      asleep_until_ = time.count() > 0 ? now + time : MonoTime{};
      if (fell_asleep) bench_.plan.look_once();
    } else {
      retry_at_ = bench_.loop.now() + retry_pause;
    }
    bench_.schedule_turn();
  });
}

}  // namespace outbox::relay
