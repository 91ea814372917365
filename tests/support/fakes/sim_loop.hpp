#pragma once
// A virtual clock and the loops that run on it. World time moves only when run() takes the next event, so an
// hour of faults passes in a millisecond and the same seed gives the same run. One thread.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "relay/ports/loop.hpp"

namespace outbox::test {

/// Seeded chance, shared by everything in one simulated world.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : random_(seed) {}
  [[nodiscard]] std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  [[nodiscard]] bool one_in(std::int64_t n) { return n > 0 && between(1, n) == 1; }
  [[nodiscard]] Micros micros(std::int64_t low, std::int64_t high) { return Micros{between(low, high)}; }

 private:
  std::mt19937_64 random_;
};

class SimClock {
 public:
  using EventId = std::pair<MonoTime, std::uint64_t>;
  [[nodiscard]] MonoTime now() const { return now_; }
  [[nodiscard]] WallTime wall() const;
  /// Time that work takes: the world goes on with the events it has missed.
  void spend(Micros time) { now_ += time; }
  EventId at(MonoTime when, std::function<void()> event);
  EventId after(Micros delay, std::function<void()> event) { return at(now_ + delay, std::move(event)); }
  void cancel(EventId id) { events_.erase(id); }
  /// Runs events until `until`, or until there are none. Answers how many ran.
  std::int64_t run(MonoTime until);

 private:
  MonoTime now_{std::chrono::hours{1}};
  std::uint64_t next_ = 1;
  std::map<EventId, std::function<void()>> events_;
};

/// The loop of one simulated process. freeze() is SIGSTOP: its turns wait; the world goes on. kill() is kill
/// -9.
class SimLoop final : public relay::Loop {
 public:
  /// `look_takes`: what passes with each look at the clock, so that a turn takes time as a real one does.
  explicit SimLoop(SimClock& clock, Micros look_takes = Micros{0}) : clock_(clock), look_takes_(look_takes) {}
  [[nodiscard]] MonoTime now() const override {
    clock_.spend(look_takes_);
    return clock_.now() - lag_;
  }
  [[nodiscard]] WallTime wall() const override { return clock_.wall() + wall_step_; }
  void post(std::function<void()> turn) override { at(clock_.now() - lag_, std::move(turn)); }
  TimerId at(MonoTime when, std::function<void()> turn) override;
  void cancel(TimerId timer) override;

  void freeze(Micros time);
  /// Sets the wall clock of this process; nothing that matters may look at it.
  void step_wall(std::chrono::hours step) { wall_step_ += step; }
  /// A mutant: its monotonic clock stands still while it is frozen.
  void clock_stops_in_freeze() { clock_stops_ = true; }
  [[nodiscard]] bool frozen() const { return clock_.now() < frozen_until_; }
  [[nodiscard]] MonoTime frozen_until() const { return frozen_until_; }
  void kill() { *alive_ = false; }

 private:
  void schedule(MonoTime when, TimerId id, std::function<void()> turn);

  SimClock& clock_;
  Micros look_takes_;
  MonoTime frozen_until_{};
  Micros lag_{0};
  std::chrono::hours wall_step_{0};
  bool clock_stops_ = false;
  TimerId next_ = 1;
  std::set<TimerId> pending_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace outbox::test
