#pragma once
// Time, turns, and the answers that come in them: what every other port is built on. Adapter: relay/host,
// stand-in: tests/support/fakes; one contract suite (tests/contract) runs over both.
//
// What holds for every port: each call returns at once; answers come later, as callbacks on the loop's
// thread, each exactly once, and never from inside the call. After stop() none come.

#include <cstdint>
#include <functional>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace outbox::relay {

template <class T>
using Done = std::function<void(Result<T>)>;
using DoneStatus = std::function<void(Status)>;

enum class LinkState { up, down };

/// Time and turns. Real: Asio. Fake: a virtual clock that runs due timers in order.
class Loop {
 public:
  using TimerId = std::uint64_t;
  virtual ~Loop() = default;
  [[nodiscard]] virtual MonoTime now() const = 0;
  [[nodiscard]] virtual WallTime wall() const = 0;  ///< for record timestamps and messages; never for leases
  virtual void post(std::function<void()> turn) = 0;
  virtual TimerId at(MonoTime when, std::function<void()> turn) = 0;
  virtual void cancel(TimerId timer) = 0;  ///< an unknown or spent id is ignored
};

}  // namespace outbox::relay
