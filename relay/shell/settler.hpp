#pragma once
// Takes rows out of the way of the others: a dead message with its reason, rows that wait behind a hold. Each
// stays in flight until the database has it; a failure is repeated.

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.hpp"
#include "relay/shell/workbench.hpp"

namespace outbox::relay {

class Settler {
 public:
  explicit Settler(Workbench& bench) : bench_(bench) {}

  /// The row becomes DEAD. With on_dead hold_key its key is blocked from now on, and held once that is
  /// written; the caller has removed what was waiting of that key.
  void bury(Row& row, std::string reason);
  /// The row becomes HELD, if its hold is still there.
  void set_held(Row& row);
  void pump(MonoTime now);
  [[nodiscard]] MonoTime wake_at() const {
    return to_bury_.empty() && to_hold_.empty() ? MonoTime::max() : retry_at_;
  }
  /// The hold that the death of `row` brings, if any.
  [[nodiscard]] std::optional<HoldTarget> hold_of(const Message& message) const;

 private:
  struct Burial {
    Row* row;
    DeadRow dead;
  };
  void bury_next();
  void hold_all();
  void close_gate(const Row& row);
  void held(Row& row);
  void answered(const Status& status, const char* what);

  Workbench& bench_;
  std::deque<Burial> to_bury_;
  std::vector<Row*> to_hold_;
  bool burying_ = false;
  bool holding_ = false;
  Backoff backoff_{{Millis{50}, Millis{5000}}, 3};
  MonoTime retry_at_{};
};

}  // namespace outbox::relay
