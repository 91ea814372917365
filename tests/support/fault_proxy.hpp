#pragma once
// A TCP relay on 127.0.0.1 between a client and a server of a test, which does to its connections what a
// network does: delay, silence, a reset, a cut in the middle of a message. It runs on a thread of its own
// from construction to destruction; every function may be called from any thread and has taken effect when it
// returns.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace outbox::test {

enum class Toward { server, client, both };

struct Fault {
  enum class Kind {
    latency,    ///< whatever goes `toward` arrives `by` later, in order
    blackhole,  ///< nothing goes `toward` any more, and nobody is told; heal() delivers what was kept back,
                ///< as TCP does after an outage
    truncate,   ///< `bytes` more go `toward`, then both ends are closed
    half_open,  ///< the server is gone for good: its end is closed, and the client is not told
    reset,      ///< both ends are ended by RST
  };
  Kind kind = Kind::reset;
  Toward toward = Toward::client;  ///< latency, blackhole, truncate
  Millis by{0};
  std::size_t bytes = 0;
};

class FaultProxy {
 public:
  /// `server_port`: where the server listens on 127.0.0.1, or will; 0: lead_to() says it later. Throws where
  /// no port can be had.
  explicit FaultProxy(std::uint16_t server_port = 0);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  void lead_to(std::uint16_t server_port);

  /// On the connections that are open now. `said`: only those whose client has sent this text in its first
  /// 16 kB; empty: all. Returns how many.
  int inflict(const Fault& fault, std::string_view said = {});
  /// Once, on the connection whose client next sends `text` (in one piece). Toward the server the piece that
  /// holds it is the first to suffer; toward the client it still passes.
  void inflict_when(const Fault& fault, std::string text);
  /// On each connection that is made from now on, until heal().
  void inflict_new(const Fault& fault);
  /// No latency, no blackhole, no trigger, and new connections work.
  void heal();

  [[nodiscard]] int open() const;      ///< connections now
  [[nodiscard]] int accepted() const;  ///< connections ever
  [[nodiscard]] bool waiting() const;  ///< the trigger of inflict_when() has not come yet

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outbox::test
