#include "relay/core/tenure.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace outbox::relay {

void Tenure::requested(MonoTime now) {
  asking_ = true;
  asked_at_ = now;
}

bool Tenure::same(std::span<const Lease> held) const {
  return active_ &&
         std::all_of(held.begin(), held.end(),
                     [&](const Lease& l) {
                       const auto& mine = leases_[static_cast<std::size_t>(l.lane.value)];
                       return mine && mine->epoch == l.epoch;
                     }) &&
         static_cast<std::size_t>(std::count_if(leases_.begin(), leases_.end(),
                                                [](const auto& l) { return l.has_value(); })) == held.size();
}

Tenure::Change Tenure::answered(std::span<const Lease> held, Millis other_remaining, MonoTime now) {
  asking_ = false;
  if (held.empty()) {
    next_request_ = now + std::clamp(other_remaining, Millis{50}, ttl_ / 3);
    const bool had = active_;
    end();
    return had ? Change::ended : Change::none;
  }
  next_request_ = asked_at_ + ttl_ / 3;
  const MonoTime ends = asked_at_ + ttl_ - ttl_ / 10;  // a tenth in hand for what is under way
  if (now >= ends) {  // the answer came too late to act on: ask again before working
    next_request_ = now;
    const bool had = active_;
    end();
    return had ? Change::ended : Change::none;
  }
  const bool renewed = same(held);
  if (active_ &&
      !renewed) {  // somebody else had them in between: what is in flight was claimed under a lost lease
    next_request_ = now;
    end();
    return Change::ended;
  }
  ends_at_ = ends;
  if (renewed) return Change::renewed;
  for (const Lease& l : held) leases_.at(static_cast<std::size_t>(l.lane.value)) = l;
  active_ = true;
  return Change::begun;
}

void Tenure::failed(MonoTime now) {
  asking_ = false;
  next_request_ = now + ttl_ / 10;
}

Tenure::Change Tenure::expire(MonoTime now) {
  if (!active_ || now < ends_at_) return Change::none;
  end();
  return Change::ended;
}

void Tenure::end() {
  active_ = false;
  std::fill(leases_.begin(), leases_.end(), std::nullopt);
}

}  // namespace outbox::relay
