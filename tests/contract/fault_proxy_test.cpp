// The fault proxy itself, between plain sockets: a test that blames a relay must be able to trust it.

#include "tests/support/fault_proxy.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "tests/support/eventually.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

constexpr Millis short_while{150};  // long enough for what needs a millisecond, to see that it does not come

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  void say(std::string_view text) const {
    REQUIRE(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
  }
  /// What came within `wait`; "(end)" for a FIN, "(reset)" for an RST, "" for nothing.
  [[nodiscard]] std::string hear(Millis wait = patience) const {
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(wait.count())) == 0) return "";
    std::array<char, 256> text{};
    const ssize_t size = ::recv(fd_, text.data(), text.size(), 0);
    if (size == 0) return "(end)";
    if (size < 0) return errno == ECONNRESET ? "(reset)" : "(error)";
    return {text.data(), static_cast<std::size_t>(size)};
  }

 private:
  int fd_;
};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A server of one connection at a time, the proxy before it, and a client of that.
struct Line {
  Line() : listener(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    REQUIRE(::bind(listener.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener.fd(), 8) == 0);
    REQUIRE(::getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    proxy.lead_to(ntohs(address.sin_port));
  }
  [[nodiscard]] int connect() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = loopback(proxy.port());
    REQUIRE(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    return fd;
  }
  [[nodiscard]] int accept() const {
    pollfd ready{.fd = listener.fd(), .events = POLLIN, .revents = 0};
    REQUIRE(::poll(&ready, 1, static_cast<int>(patience.count())) == 1);
    return ::accept(listener.fd(), nullptr, nullptr);
  }
  Socket listener;
  FaultProxy proxy;
};

// One connection, through.
struct Pair : Line {
  Socket client{connect()};
  Socket server{accept()};
};

}  // namespace

TEST_CASE("without a fault bytes pass both ways, and a close passes too") {
  Pair pair;
  pair.client.say("to the server");
  CHECK(pair.server.hear() == "to the server");
  pair.server.say("to the client");
  CHECK(pair.client.hear() == "to the client");
  CHECK(pair.proxy.open() == 1);
  ::shutdown(pair.server.fd(), SHUT_RDWR);
  CHECK(pair.client.hear() == "(end)");
  eventually("the proxy forgets it", [&] { return pair.proxy.open() == 0; });
  CHECK(pair.proxy.accepted() == 1);
}

TEST_CASE("latency delays one direction, and not the other") {
  Pair pair;
  CHECK(pair.proxy.inflict({.kind = Fault::Kind::latency, .toward = Toward::client, .by = Millis{300}}) == 1);
  const MonoTime start = std::chrono::steady_clock::now();
  pair.client.say("ping");
  CHECK(pair.server.hear() == "ping");
  CHECK(std::chrono::steady_clock::now() - start < Millis{250});
  pair.server.say("pong");
  CHECK(pair.client.hear() == "pong");
  CHECK(std::chrono::steady_clock::now() - start >= Millis{300});
}

TEST_CASE("a blackhole is silent in its direction only, and gives everything up in order when it is healed") {
  Pair pair;
  pair.proxy.inflict({.kind = Fault::Kind::blackhole, .toward = Toward::server});
  pair.client.say("one ");
  CHECK(pair.server.hear(short_while).empty());
  pair.client.say("two");
  pair.server.say("still here");
  CHECK(pair.client.hear() == "still here");
  CHECK(pair.server.hear(short_while).empty());
  pair.proxy.heal();
  std::string heard;
  while (heard.size() < 7) heard += pair.server.hear();
  CHECK(heard == "one two");
}

TEST_CASE("truncated: so many bytes arrive, then the end") {
  Pair pair;
  pair.proxy.inflict({.kind = Fault::Kind::truncate, .toward = Toward::client, .bytes = 5});
  pair.server.say("a whole message");
  CHECK(pair.client.hear() == "a who");
  CHECK(pair.client.hear() == "(end)");
  CHECK(pair.server.hear() != "");
}

TEST_CASE("half-open: the server's end is gone, the client hears nothing, healed or not") {
  Pair pair;
  pair.proxy.inflict({.kind = Fault::Kind::half_open});
  CHECK(pair.server.hear() == "(end)");
  pair.client.say("anybody?");
  CHECK(pair.client.hear(short_while).empty());
  pair.proxy.heal();
  CHECK(pair.client.hear(short_while).empty());
  CHECK(pair.proxy.open() == 1);
}

TEST_CASE("reset: both ends get an RST, and a new connection works") {
  Pair pair;
  CHECK(pair.proxy.inflict({.kind = Fault::Kind::reset}) == 1);
  CHECK(pair.client.hear() == "(reset)");
  CHECK(pair.server.hear() == "(reset)");
  const Socket again(pair.connect());
  const Socket other(pair.accept());
  again.say("again");
  CHECK(other.hear() == "again");
}

TEST_CASE("a fault strikes only connections whose client said the text") {
  Pair pair;
  const Socket other_client(pair.connect());
  const Socket other_server(pair.accept());
  pair.client.say("LISTEN here");
  CHECK(pair.server.hear() == "LISTEN here");
  CHECK(pair.proxy.inflict({.kind = Fault::Kind::reset}, "LISTEN") == 1);
  CHECK(pair.client.hear() == "(reset)");
  other_client.say("unharmed");
  CHECK(other_server.hear() == "unharmed");
}

TEST_CASE("a fault that waits for a text strikes with it: toward the server it is the first thing lost") {
  Pair pair;
  pair.proxy.inflict_when({.kind = Fault::Kind::blackhole, .toward = Toward::server}, "UPDATE");
  pair.client.say("SELECT");
  CHECK(pair.server.hear() == "SELECT");
  CHECK(pair.proxy.waiting());
  pair.client.say("UPDATE");
  CHECK(pair.server.hear(short_while).empty());
  CHECK_FALSE(pair.proxy.waiting());
}

TEST_CASE("a fault that waits for a text strikes with it: toward the client the text still passes") {
  Pair pair;
  pair.proxy.inflict_when({.kind = Fault::Kind::blackhole, .toward = Toward::client}, "UPDATE");
  pair.client.say("UPDATE");
  CHECK(pair.server.hear() == "UPDATE");
  pair.server.say("done");
  CHECK(pair.client.hear(short_while).empty());
}

TEST_CASE("a fault of new connections strikes each of them, and none after heal()") {
  Line line;
  line.proxy.inflict_new({.kind = Fault::Kind::reset});
  const Socket refused(line.connect());
  CHECK(refused.hear() == "(reset)");
  line.proxy.heal();
  const Socket client(line.connect());
  const Socket server(line.accept());
  client.say("fine");
  CHECK(server.hear() == "fine");
}

TEST_CASE("where no server listens a connection is reset") {
  FaultProxy proxy;
  {
    Line line;
    proxy.lead_to(line.proxy.port());
  }
  const Socket client([&] {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = loopback(proxy.port());
    REQUIRE(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    return fd;
  }());
  CHECK(client.hear() == "(reset)");
}
