#pragma once
// Tells systemd how the service does: one datagram a message, to the socket that $NOTIFY_SOCKET names.
// Written out here and not taken from libsystemd: the protocol is a dozen stable lines, and that library
// brings decompressors into a process of the money path. Without the variable every call does nothing.
// Thread: one; never blocks. Source: sd_notify(3), sd_watchdog_enabled(3).

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace outbox::relay {

class ServiceNotify {
 public:
  /// Shape: reads $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID.
  [[nodiscard]] static ServiceNotify from_environment();

  ServiceNotify(ServiceNotify&& other) noexcept;
  ServiceNotify& operator=(ServiceNotify&&) = delete;
  ~ServiceNotify();

  void ready();
  void reloading();
  void stopping();
  void status(std::string_view text);  ///< cut to one line
  void watchdog();                     ///< it makes progress
  /// A start or stop takes until then, for a reason that is known.
  void extend(Micros time);

  [[nodiscard]] bool active() const { return fd_ >= 0; }
  /// Without watchdog() for this long systemd ends the service; nullopt: it does not watch.
  [[nodiscard]] std::optional<Micros> watchdog_after() const { return watchdog_after_; }

 private:
  ServiceNotify() = default;
  void send(std::string_view text) const noexcept;

  int fd_ = -1;
  std::string address_;  // a sockaddr_un, as its bytes
  std::optional<Micros> watchdog_after_;
};

}  // namespace outbox::relay
