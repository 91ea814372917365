#pragma once
// A browser's or a scraper's side of HTTP for tests: one request, one answer, or any bytes. Blocks; throws
// where nothing can be connected to.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "tests/support/eventually.hpp"

namespace outbox::test {

/// Where a server is: a TCP port of the loopback, or the path of a unix socket.
struct HttpPlace {
  std::uint16_t port = 0;
  std::string path{};
};

/// A connection, closed with its scope.
class HttpWire {
 public:
  explicit HttpWire(const HttpPlace& place);
  ~HttpWire();
  HttpWire(const HttpWire&) = delete;
  HttpWire& operator=(const HttpWire&) = delete;

  /// False: the peer has closed it.
  bool send(std::string_view bytes);
  /// What comes until the peer closes, or until `deadline`.
  [[nodiscard]] std::string read_to_end(Millis deadline = patience);
  /// What comes until it holds `until`, the peer closes, or `deadline`.
  [[nodiscard]] std::string read_until(std::string_view until, Millis deadline = patience);
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  bool read_some(std::string& to, MonoTime by);
  int fd_ = -1;
  bool closed_ = false;
};

struct HttpReply {
  int status = 0;  ///< 0: no HTTP came
  std::string head;
  std::string body;
};
[[nodiscard]] HttpReply parse_http(const std::string& bytes);
/// GET, and the connection is closed.
[[nodiscard]] HttpReply http_get(const HttpPlace& place, std::string_view target,
                                 std::string_view host = "localhost");

/// A TCP port of the loopback that was free a moment ago.
[[nodiscard]] std::uint16_t free_port();

}  // namespace outbox::test
