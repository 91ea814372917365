#include "relay/commands/migrate/lock_patience.hpp"

#include <chrono>
#include <string_view>
#include <thread>

namespace outbox::relay {
namespace {

constexpr Millis pause{250};  // in which those who waited behind the last try have their turn
constexpr std::string_view lock_not_available = "55P03";
constexpr std::string_view deadlock_detected = "40P01";

}  // namespace

Status with_patience(Millis patience, const std::function<Status()>& work) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (true) {
    Status done = work();
    if (done || (done.error().code != lock_not_available && done.error().code != deadlock_detected))
      return done;
    if (std::chrono::steady_clock::now() >= until) {
      Error error = std::move(done.error());
      error.advice =
          "an open transaction uses what is to change, and nothing waits for it for long: run it again "
          "when that one has ended (pg_locks and pg_stat_activity name it)";
      return failure(std::move(error));
    }
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace outbox::relay
