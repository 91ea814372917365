#include "tests/support/notify_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace outbox::test {

NotifySocket::NotifySocket() : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path().copy(address.sun_path, sizeof address.sun_path - 1);
  if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("cannot bind " + path());
}

NotifySocket::~NotifySocket() {
  ::close(fd_);
}

const std::vector<std::string>& NotifySocket::messages() {
  std::array<char, 4096> bytes{};
  for (;;) {
    const auto got = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (got < 0) return messages_;
    messages_.emplace_back(bytes.data(), static_cast<std::size_t>(got));
  }
}

std::ptrdiff_t NotifySocket::count(std::string_view start) {
  return std::ranges::count_if(messages(), [&](const std::string& m) { return m.starts_with(start); });
}

}  // namespace outbox::test
