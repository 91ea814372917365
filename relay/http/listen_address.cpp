#include "relay/http/listen_address.hpp"

#include <boost/asio/ip/address.hpp>

#include <charconv>
#include <optional>

namespace outbox::relay {
namespace {

constexpr std::size_t unix_path_bytes_max = 107;  // of sockaddr_un
constexpr std::string_view unix_scheme = "unix:";

auto refused(std::string_view text, std::string_view why) {
  return failure(Disposition::fatal, "`" + std::string{text} + "` " + std::string{why}, "",
                 "write 127.0.0.1:9464, [::1]:9464, unix:/path or off");
}

std::optional<std::uint16_t> port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return port;
}

// "[::1]:80" → "::1"; "127.0.0.1:80" → "127.0.0.1"; the port is behind the last colon outside of brackets.
std::string_view host_of(std::string_view text) {
  if (text.starts_with('[')) return text.substr(1, text.find(']') - 1);
  return text.substr(0, text.rfind(':'));
}

std::string bracketed(const std::string& address) {
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  if (text == "off") return ListenAddress{NoAddress{}};
  if (text.starts_with(unix_scheme)) {
    const std::string_view path = text.substr(unix_scheme.size());
    if (!path.starts_with('/') || path.size() > unix_path_bytes_max)
      return refused(text, "is no absolute path of at most 107 bytes");
    return ListenAddress{UnixAddress{std::string{path}}};
  }
  const auto colon = text.rfind(':');
  const auto port = colon == std::string_view::npos ? std::nullopt : port_of(text.substr(colon + 1));
  if (!port) return refused(text, "has no port");
  const std::string_view host = host_of(text);
  const bool bare_v6 = !text.starts_with('[') && host.find(':') != std::string_view::npos;
  boost::system::error_code error;
  const auto address =
      boost::asio::ip::make_address(host == "localhost" ? "127.0.0.1" : std::string{host}, error);
  if (error || bare_v6) return refused(text, "has no address before its port (names are not looked up)");
  return ListenAddress{TcpAddress{address.to_string(), *port, address.is_loopback()}};
}

std::string to_string(const ListenAddress& address) {
  if (const auto* tcp = std::get_if<TcpAddress>(&address))
    return bracketed(tcp->address) + ":" + std::to_string(tcp->port);
  if (const auto* local = std::get_if<UnixAddress>(&address)) return std::string{unix_scheme} + local->path;
  return "off";
}

bool host_allowed(const ListenAddress& address, std::string_view host) {
  const auto* tcp = std::get_if<TcpAddress>(&address);
  if (tcp == nullptr || !tcp->loopback) return true;
  const auto last = host.rfind(':');
  const bool with_port = last != std::string_view::npos && host.find(']', last) == std::string_view::npos;
  const std::string whole = with_port ? std::string{host} : std::string{host} + ":";
  const std::string_view name = host_of(whole);
  if (name == "localhost") return true;
  boost::system::error_code error;
  boost::asio::ip::make_address(std::string{name}, error);
  return !error;
}

}  // namespace outbox::relay
