#include "tests/support/http.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace outbox::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int connected(const HttpPlace& place) {
  const bool local = !place.path.empty();
  const int fd = ::socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un path{};
  path.sun_family = AF_UNIX;
  place.path.copy(path.sun_path, sizeof path.sun_path - 1);
  const sockaddr_in port = loopback(place.port);
  const auto* address =
      local ? reinterpret_cast<const sockaddr*>(&path) : reinterpret_cast<const sockaddr*>(&port);
  if (fd >= 0 && ::connect(fd, address, local ? sizeof path : sizeof port) == 0) return fd;
  const std::string why = std::strerror(errno);
  if (fd >= 0) ::close(fd);
  throw std::runtime_error("cannot connect to " + (local ? place.path : std::to_string(place.port)) + ": " +
                           why);
}

}  // namespace

HttpWire::HttpWire(const HttpPlace& place) : fd_(connected(place)) {}

HttpWire::~HttpWire() {
  ::close(fd_);
}

bool HttpWire::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool HttpWire::read_some(std::string& to, MonoTime by) {
  const auto left = std::chrono::duration_cast<Millis>(by - std::chrono::steady_clock::now()).count();
  pollfd wait{fd_, POLLIN, 0};
  if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) <= 0) return false;
  std::array<char, 65536> bytes{};
  const auto got = ::recv(fd_, bytes.data(), bytes.size(), 0);
  if (got <= 0) closed_ = true;
  if (got > 0) to.append(bytes.data(), static_cast<std::size_t>(got));
  return got > 0;
}

std::string HttpWire::read_to_end(Millis deadline) {
  std::string out;
  const auto by = std::chrono::steady_clock::now() + deadline;
  while (read_some(out, by)) continue;
  return out;
}

std::string HttpWire::read_until(std::string_view until, Millis deadline) {
  std::string out;
  const auto by = std::chrono::steady_clock::now() + deadline;
  while (out.find(until) == std::string::npos && read_some(out, by)) continue;
  return out;
}

HttpReply parse_http(const std::string& bytes) {
  HttpReply reply;
  const auto end = bytes.find("\r\n\r\n");
  if (!bytes.starts_with("HTTP/1.1 ") || end == std::string::npos) return reply;
  reply.status = std::atoi(bytes.c_str() + 9);
  reply.head = bytes.substr(0, end);
  reply.body = bytes.substr(end + 4);
  return reply;
}

HttpReply http_get(const HttpPlace& place, std::string_view target, std::string_view host) {
  HttpWire wire(place);
  wire.send("GET " + std::string{target} + " HTTP/1.1\r\nHost: " + std::string{host} +
            "\r\nConnection: close\r\n\r\n");
  return parse_http(wire.read_to_end());
}

std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(fd);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

}  // namespace outbox::test
