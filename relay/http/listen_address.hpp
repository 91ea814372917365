#pragma once
// Where the admin endpoint listens, as it is written in admin.listen. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.hpp"

namespace outbox::relay {

struct TcpAddress {
  std::string address;  ///< an IPv4 or IPv6 address, never a name
  std::uint16_t port = 0;
  bool loopback = false;
};
struct UnixAddress {
  std::string path;
};
struct NoAddress {};  ///< "off"
using ListenAddress = std::variant<NoAddress, TcpAddress, UnixAddress>;

/// Shape: "127.0.0.1:9464", "[::1]:9464", "localhost:9464", "unix:/run/outboxd/admin.sock" or "off". All
/// interfaces only by their own address: "0.0.0.0:9464", "[::]:9464". Errors: fatal: none of these.
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text);

/// As it is written.
[[nodiscard]] std::string to_string(const ListenAddress& address);

/// Whether a request that names `host` may be answered. A page of the web can make a browser ask an address
/// of this machine under a name of the page's own (DNS rebinding); it cannot make it ask under an address. So
/// where only this machine is listened to, the host must be localhost or an address.
[[nodiscard]] bool host_allowed(const ListenAddress& address, std::string_view host);

}  // namespace outbox::relay
