#include "relay/host/systemd_notify.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <utility>

namespace outbox::relay {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size() || out <= 0) return std::nullopt;
  return out;
}

// A path, or with '@' a name in the abstract namespace, whose first byte is a NUL.
std::string address_of(std::string_view name) {
  sockaddr_un address{};
  if (name.size() >= sizeof address.sun_path || (!name.starts_with('/') && !name.starts_with('@'))) return {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, name.size());
  if (name.starts_with('@')) address.sun_path[0] = '\0';
  return {reinterpret_cast<const char*>(&address), offsetof(sockaddr_un, sun_path) + name.size()};
}

}  // namespace

ServiceNotify ServiceNotify::from_environment() {
  ServiceNotify out;
  out.address_ = address_of(variable("NOTIFY_SOCKET"));
  if (out.address_.empty()) return out;
  out.fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const auto watched = number(variable("WATCHDOG_PID"));
  if (watched && *watched != ::getpid()) return out;
  if (const auto micros = number(variable("WATCHDOG_USEC"))) out.watchdog_after_ = Micros{*micros};
  return out;
}

ServiceNotify::ServiceNotify(ServiceNotify&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      address_(std::move(other.address_)),
      watchdog_after_(other.watchdog_after_) {}

ServiceNotify::~ServiceNotify() {
  if (fd_ >= 0) ::close(fd_);
}

// A message that cannot be sent is lost: the next one says as much, and the service must not suffer.
void ServiceNotify::send(std::string_view text) const noexcept {
  if (fd_ < 0) return;
  static_cast<void>(::sendto(fd_, text.data(), text.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(address_.data()),
                             static_cast<socklen_t>(address_.size())));
}

void ServiceNotify::ready() {
  send("READY=1");
}

void ServiceNotify::reloading() {
  const auto now = std::chrono::duration_cast<Micros>(std::chrono::steady_clock::now().time_since_epoch());
  send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(now.count()));
}

void ServiceNotify::stopping() {
  send("STOPPING=1");
}

void ServiceNotify::status(std::string_view text) {
  send("STATUS=" + std::string{text.substr(0, text.find('\n'))});
}

void ServiceNotify::watchdog() {
  send("WATCHDOG=1");
}

void ServiceNotify::extend(Micros time) {
  send("EXTEND_TIMEOUT_USEC=" + std::to_string(time.count()));
}

}  // namespace outbox::relay
