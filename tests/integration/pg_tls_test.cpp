// PostgreSQL over TLS: who must prove what, and what is said where the proof fails.

#include <doctest/doctest.h>

#include "cli.hpp"
#include "tests/support/postgres.hpp"

namespace outbox {
namespace {

const std::string password = "s3cr3t-of-the-clerk";

// A server that takes TLS alone, with a certificate of `authority` for localhost and a role with a password.
struct SecureServer {
  test::CertificateAuthority authority{"the right CA"};
  test::CertificateAuthority stranger{"another CA"};
  test::PostgresServer server{
      {.host_auth = "scram-sha-256", .tls = authority.issue("postgres", "DNS:localhost,IP:127.0.0.1")}};

  SecureServer() {
    auto admin = test::must(pg::Session::connect({.uri = server.local_uri()}));
    test::must(admin.exec("CREATE ROLE clerk LOGIN PASSWORD '" + password + "'"));
  }

  // With the strictest options; `more` wins over them.
  [[nodiscard]] std::string uri(const std::string& host, const std::string& more = "") const {
    return "host=" + host + " hostaddr=127.0.0.1 port=" + std::to_string(server.port()) +
           " dbname=postgres user=clerk password=" + password +
           " sslmode=verify-full channel_binding=require sslrootcert=" + authority.certificate().string() +
           " " + more;
  }
};

void check_names(const Error& error, std::initializer_list<std::string> words) {
  CAPTURE(error.text());
  CHECK(error.disposition == Disposition::retry);  // a certificate can be mended while the relay waits
  for (const auto& word : words) CHECK(error.text().find(word) != std::string::npos);
  CHECK(error.text().find(password) == std::string::npos);
  CHECK(error.text().find('\n') == std::string::npos);
}

Error refusal(const std::string& uri) {
  auto session = pg::Session::connect({.uri = uri});
  REQUIRE(!session);
  return session.error();
}

}  // namespace

TEST_CASE(
    "PostgreSQL over TLS: verify-full and channel binding work, and what does not prove itself is refused by "
    "name") {
  const SecureServer secure;
  SUBCASE("the right CA and name") {
    auto session = test::must(pg::Session::connect({.uri = secure.uri("localhost")}));
    const auto rows =
        test::must(session.exec("SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()"));
    CHECK(rows.text(0, 0) == "t");
    CHECK(rows.text(0, 1) >= "TLSv1.2");
  }
  SUBCASE("a host that the certificate is not for") {
    check_names(refusal(secure.uri("db.example")), {"db.example", "sslrootcert"});
  }
  SUBCASE("a CA that did not sign it") {
    check_names(refusal(secure.uri("localhost", "sslrootcert=" + secure.stranger.certificate().string())),
                {"certificate verify failed", "sslrootcert"});
  }
  SUBCASE("a CA file that is not there") {
    check_names(refusal(secure.uri("localhost", "sslrootcert=/nonexistent/ca.crt")), {"/nonexistent/ca.crt"});
  }
  SUBCASE("no TLS") {
    const Error error = refusal(secure.uri("localhost", "sslmode=disable channel_binding=prefer"));
    CHECK(error.code == "28000");
    CHECK(error.disposition == Disposition::fatal);
  }
}

TEST_CASE("a server without TLS or channel binding is refused where they are required") {
  const test::PostgresServer
      plain;  // trusts: no password is asked for, so nothing can be bound to the channel
  const std::string address = "postgresql://postgres@127.0.0.1:" + std::to_string(plain.port()) + "/postgres";
  check_names(refusal(address + "?sslmode=verify-full&sslrootcert=/dev/null"),
              {"does not support SSL", "sslmode"});
  check_names(refusal(address + "?channel_binding=require"), {"channel binding required", "channel_binding"});
}

}  // namespace outbox
