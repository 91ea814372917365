// Any bytes whatever on a connection of the admin endpoint: each answer is HTTP, nothing but a GET or HEAD
// whose host no page of the web can name gets a page, a connection asks no more often than it may, and none
// stays behind.

#include <boost/asio/io_context.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "relay/http/http_connection.hpp"
#include "relay/http/listen_address.hpp"
#include "relay/metrics/exposition.hpp"

namespace {

using namespace outbox::relay;
using boost::asio::local::stream_protocol;

constexpr int requests_max = 4;
constexpr std::uint32_t header_bytes_max = 256;  // so that the fuzzer's inputs reach it
constexpr std::uint64_t body_bytes_max = 64;

void require(bool law) {
  if (!law) std::abort();
}

std::size_t times(std::string_view text, std::string_view word) {
  std::size_t out = 0;
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++out;
  return out;
}

// A name that a resolver could be asked for: no colon but that of the port, and not all digits and dots.
bool can_be_a_foreign_name(std::string_view host) {
  if (const auto colon = host.find(':'); colon != std::string_view::npos) {
    if (host.find(':', colon + 1) != std::string_view::npos) return false;  // IPv6
    host = host.substr(0, colon);
  }
  return host != "localhost" && host.find_first_not_of("0123456789.") != std::string_view::npos;
}

// A connection's other end: says everything at once and hears what it is answered.
class Peer {
 public:
  Peer() { require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_) == 0); }
  ~Peer() { ::close(ends_[0]); }
  [[nodiscard]] int server_end() const { return ends_[1]; }
  void say(std::string_view bytes) const {
    require(::write(ends_[0], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    require(::shutdown(ends_[0], SHUT_WR) == 0);
  }
  [[nodiscard]] std::string heard() const {
    std::string out;
    char piece[4096];
    for (ssize_t got = 0; (got = ::read(ends_[0], piece, sizeof piece)) > 0;)
      out.append(piece, static_cast<std::size_t>(got));
    return out;
  }

 private:
  int ends_[2] = {};
};

struct Endpoint {
  const ListenAddress address = TcpAddress{"127.0.0.1", 9464, true};
  bool allowed = false;  // the host of the request that is being judged
  int pages = 0;

  HttpRules rules() {
    return {
        .limits = {.header_bytes = header_bytes_max, .body_bytes = body_bytes_max, .requests = requests_max},
        .host_allowed =
            [this](std::string_view host) {
              allowed = host_allowed(address, host);
              require(!allowed || !can_be_a_foreign_name(host));
              return allowed;
            },
        .answer =
            [this](std::string_view target, std::string_view accept) {
              require(allowed && target.find_first_of("?\r\n ") == std::string_view::npos);
              allowed = false;
              ++pages;
              return HttpAnswer{.content_type = content_type(format_accepted(accept)), .body = "a page"};
            },
        .on_answered = [] {},
        .on_refused = [] {}};
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static boost::asio::io_context loop{1};
  const std::string_view asked(reinterpret_cast<const char*>(data), size);
  const Peer peer;
  peer.say(asked);

  Endpoint endpoint;
  HttpConnections connections;
  connections.add(stream_protocol::socket{loop, stream_protocol{}, peer.server_end()}, endpoint.rules());
  loop.restart();
  loop.run();
  require(connections.size() == 0);

  const std::string heard = peer.heard();
  require(heard.empty() || heard.starts_with("HTTP/1.1 "));
  require(times(heard, "HTTP/1.1 200 ") == static_cast<std::size_t>(endpoint.pages));
  require(times(heard, "HTTP/1.1 ") <= requests_max);
  require(static_cast<std::size_t>(endpoint.pages) <= times(asked, "GET ") + times(asked, "HEAD "));
  return 0;
}
