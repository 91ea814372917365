#include "tests/support/fakes/sim_loop.hpp"

namespace outbox::test {

WallTime SimClock::wall() const {
  using namespace std::chrono;
  return WallTime{sys_days{year{2026} / 1 / 1}} + duration_cast<Micros>(now_.time_since_epoch());
}

SimClock::EventId SimClock::at(MonoTime when, std::function<void()> event) {
  const EventId id{std::max(when, now_), next_++};
  events_.emplace(id, std::move(event));
  return id;
}

std::int64_t SimClock::run(MonoTime until) {
  std::int64_t ran = 0;
  while (!events_.empty() && events_.begin()->first.first <= until) {
    auto node = events_.extract(events_.begin());
    now_ = std::max(now_, node.key().first);
    node.mapped()();
    ran += 1;
  }
  now_ = std::max(now_, until);
  return ran;
}

void SimLoop::freeze(Micros time) {
  const MonoTime until = std::max(frozen_until_, clock_.now() + time);
  if (clock_stops_) lag_ += std::chrono::duration_cast<Micros>(until - std::max(frozen_until_, clock_.now()));
  frozen_until_ = until;
}

relay::Loop::TimerId SimLoop::at(MonoTime when, std::function<void()> turn) {
  const TimerId id = next_++;
  pending_.insert(id);
  schedule(when + lag_, id, std::move(turn));
  return id;
}

void SimLoop::schedule(MonoTime when, TimerId id, std::function<void()> turn) {
  clock_.at(when, [this, id, alive = alive_, turn = std::move(turn)]() mutable {
    if (!*alive || !pending_.contains(id)) return;
    if (frozen()) return schedule(frozen_until_, id, std::move(turn));
    pending_.erase(id);
    turn();
  });
}

void SimLoop::cancel(TimerId timer) {
  pending_.erase(timer);
}

}  // namespace outbox::test
