#include "relay/http/listen_address.hpp"

#include <doctest/doctest.h>

using namespace outbox;
using namespace outbox::relay;

TEST_CASE("an address is read as it is written") {
  for (const char* text :
       {"127.0.0.1:9464", "[::1]:9464", "0.0.0.0:80", "[::]:0", "unix:/run/outboxd/admin.sock", "off"}) {
    CAPTURE(text);
    const auto address = parse_listen_address(text);
    REQUIRE(address);
    CHECK(to_string(*address) == text);
  }
  CHECK(to_string(parse_listen_address("localhost:80").value()) == "127.0.0.1:80");
}

TEST_CASE("what is no address is refused, a name and a lone port among it: neither becomes all interfaces") {
  for (const char* text :
       {"", "9464", ":9464", "*:9464", "example.com:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
        "127.0.0.1:-1", "::1:80", "[::1]", "unix:", "unix:relative", "http://127.0.0.1:80"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_listen_address(text));
  }
  CHECK_FALSE(parse_listen_address("unix:/" + std::string(107, 'a')));
}

TEST_CASE("on the loopback a host is an address or localhost, so that no web page's name leads here") {
  const auto loopback = parse_listen_address("127.0.0.1:80").value();
  for (const char* host :
       {"127.0.0.1", "127.0.0.1:9464", "[::1]:80", "[::1]", "localhost", "localhost:80", "10.0.0.7:80"}) {
    CAPTURE(host);
    CHECK(host_allowed(loopback, host));
  }
  for (const char* host :
       {"", "evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example:80"}) {
    CAPTURE(host);
    CHECK_FALSE(host_allowed(loopback, host));
  }
  CHECK(host_allowed(parse_listen_address("0.0.0.0:80").value(), "relay.example:80"));
  CHECK(host_allowed(parse_listen_address("unix:/a").value(), ""));
}
