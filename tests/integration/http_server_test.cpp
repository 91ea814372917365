#include "relay/http/http_server.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <deque>
#include <future>
#include <memory>
#include <thread>

#include "tests/support/http.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace outbox;
using namespace outbox::relay;
using namespace outbox::test;

namespace {

// A server on a loop of its own, as it is in the daemon.
class Served {
 public:
  explicit Served(const std::string& address, HttpLimits limits = {}) {
    server_ = std::make_unique<HttpServer>(
        loop_, parse_listen_address(address).value(), limits, [](std::string_view target, std::string_view) {
          return HttpAnswer{.status = 200, .body = "you asked for " + std::string{target}};
        });
    on_loop([this] {
      server_->start([this](const Status& s) { told_.push_back(s ? "listening" : s.error().text()); });
    });
  }
  ~Served() {
    on_loop([this] { server_.reset(); });
    loop_.stop();
    thread_.join();
  }
  [[nodiscard]] HttpPlace place() {
    HttpPlace out;
    on_loop([&] { out.port = server_->port(); });
    return out;
  }
  [[nodiscard]] HttpTotals totals() {
    HttpTotals out;
    on_loop([&] { out = server_->totals(); });
    return out;
  }
  [[nodiscard]] std::string told() {
    std::string out;
    on_loop([&] { out = told_.empty() ? "" : told_.back(); });
    return out;
  }

 private:
  void on_loop(const std::function<void()>& turn) {
    std::promise<void> done;
    boost::asio::post(loop_, [&] {
      turn();
      done.set_value();
    });
    done.get_future().wait();
  }
  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{loop_.get_executor()};
  std::unique_ptr<HttpServer> server_;
  std::deque<std::string> told_;
  std::thread thread_{[this] { loop_.run(); }};
};

const std::string any_port = "127.0.0.1:0";

int status_of(Served& served, const std::string& request) {
  HttpWire wire(served.place());
  wire.send(request);
  return parse_http(wire.read_until("\r\n\r\n")).status;
}

}  // namespace

TEST_CASE("a GET is answered, without its query, and loads nothing from elsewhere") {
  Served served(any_port);
  const auto reply = http_get(served.place(), "/metrics?x=1");
  CHECK(reply.status == 200);
  CHECK(reply.body == "you asked for /metrics");
  CHECK(reply.head.find("Content-Security-Policy: default-src 'none'") != std::string::npos);
  CHECK(reply.head.find("X-Content-Type-Options: nosniff") != std::string::npos);
}

TEST_CASE("a HEAD has the length and no body, and a connection serves one request after another") {
  Served served(any_port);
  HttpWire wire(served.place());
  wire.send("HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto head = parse_http(wire.read_until("\r\n\r\n"));
  CHECK(head.status == 200);
  CHECK(head.head.find("Content-Length: 16") != std::string::npos);
  CHECK(head.body.empty());
  wire.send("GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(wire.read_until("for /b").ends_with("you asked for /b"));
}

TEST_CASE("nothing but GET and HEAD is answered") {
  Served served(any_port);
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"}) {
    CAPTURE(method);
    CHECK(status_of(served, std::string{method} + " / HTTP/1.1\r\nHost: localhost\r\n\r\n") == 405);
  }
}

TEST_CASE("a host that is a name from the web is not answered on the loopback") {
  Served served(any_port);
  CHECK(http_get(served.place(), "/", "rebound.example").status == 421);
  CHECK(http_get(served.place(), "/", "127.0.0.1:80").status == 200);
}

TEST_CASE("an oversized header is cut") {
  Served served(any_port);
  HttpWire wire(served.place());
  wire.send("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(9000, 'x'));
  const int status = parse_http(wire.read_to_end()).status;
  CHECK(wire.closed());
  CHECK((status == 431 || status == 0));  // 0: the reset overtook the answer
  CHECK(served.totals().refused == 1);
}

TEST_CASE("an oversized body is cut before it is read") {
  Served served(any_port);
  HttpWire wire(served.place());
  wire.send("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n");
  CHECK(parse_http(wire.read_to_end()).status == 413);
  CHECK(wire.closed());
}

TEST_CASE("what is no HTTP is told so and cut") {
  Served served(any_port);
  HttpWire wire(served.place());
  wire.send("\x16\x03\x01\x02 hello\r\n\r\n");
  CHECK(parse_http(wire.read_to_end()).status == 400);
  CHECK(wire.closed());
}

TEST_CASE("a slow-loris, which sends a header byte by byte and never ends, is cut in time") {
  Served served(any_port, {.request_time = Millis{400}});
  HttpWire wire(served.place());
  wire.send("GET / HTTP/1.1\r\nHost: localhost\r\n");
  const auto begun = std::chrono::steady_clock::now();
  eventually("the connection is cut", [&] { return !wire.send("X") || wire.closed(); });
  CHECK(std::chrono::steady_clock::now() - begun < Millis{3000});
  CHECK(served.totals().refused == 1);
  CHECK(http_get(served.place(), "/").status == 200);
}

TEST_CASE("a connection that asks nothing is closed in time, and is no offence") {
  Served served(any_port, {.request_time = Millis{200}});
  HttpWire wire(served.place());
  CHECK(wire.read_to_end().empty());
  CHECK(wire.closed());
  CHECK(served.totals().refused == 0);
}

TEST_CASE("connections beyond the limit are closed at once, and one that ends makes room") {
  Served served(any_port, {.connections = 2});
  auto first = std::make_unique<HttpWire>(served.place());
  const HttpWire second(served.place());
  HttpWire third(served.place());
  CHECK(third.read_to_end(Millis{2000}).empty());
  CHECK(third.closed());
  CHECK(served.totals().refused == 1);
  first.reset();
  eventually("there is room again", [&] { return http_get(served.place(), "/").status == 200; });
}

TEST_CASE("a unix socket serves its owner and group, replaces a dead one's and goes with the server") {
  const TemporaryDirectory folder("outbox-http");
  const HttpPlace place{.path = (folder / "admin.sock").string()};
  {
    Served served("unix:" + place.path);
    CHECK(http_get(place, "/x").body == "you asked for /x");
    struct stat found {};
    REQUIRE(::stat(place.path.c_str(), &found) == 0);
    CHECK((found.st_mode & 0777U) == 0660);
    Served other("unix:" + place.path);
    CHECK(other.told().find("Address already in use") != std::string::npos);
    CHECK(http_get(place, "/x").status == 200);
  }
  CHECK_FALSE(std::filesystem::exists(place.path));
  { Served killed("unix:" + place.path); }
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  place.path.copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  ::close(fd);  // as kill -9 leaves it
  Served served("unix:" + place.path);
  CHECK(http_get(place, "/x").status == 200);
}

TEST_CASE("where the port is taken the server says so, and listens once it is free") {
  auto first = std::make_unique<Served>(any_port);
  const std::string address = "127.0.0.1:" + std::to_string(first->place().port);
  Served second(address);
  CHECK(second.told().find("cannot listen on " + address) != std::string::npos);
  first.reset();
  eventually("the second listens", [&] { return second.told() == "listening"; });
  CHECK(http_get(second.place(), "/").status == 200);
}
