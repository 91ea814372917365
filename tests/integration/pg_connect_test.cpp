#include <doctest/doctest.h>

#include "tests/support/postgres.hpp"

namespace outbox {
namespace {

Error refusal(const std::string& uri, Millis timeout = Millis{5000}) {
  auto session = pg::Session::connect({.uri = uri, .connect_timeout = timeout});
  REQUIRE(!session);
  return session.error();
}

}  // namespace

TEST_CASE(
    "a wrong password, role or database is fatal with the server's SQLSTATE, and never shows the password") {
  const test::PostgresServer server{{.host_auth = "scram-sha-256"}};
  auto admin = test::must(pg::Session::connect(
      {.uri = "user=postgres host=" + server.socket_folder() + " port=" + std::to_string(server.port())}));
  test::must(admin.exec("CREATE ROLE clerk LOGIN PASSWORD 'right-one'"));
  test::must(admin.exec("CREATE DATABASE closed"));
  test::must(admin.exec("REVOKE CONNECT ON DATABASE closed FROM PUBLIC"));

  const std::string address = "@127.0.0.1:" + std::to_string(server.port()) + "/";
  struct Case {
    std::string uri;
    std::string code;
  };
  for (const Case& c : {Case{"postgresql://clerk:s3cr3t" + address + "postgres", "28P01"},
                        Case{"postgresql://nobody:s3cr3t" + address + "postgres", "28P01"},
                        Case{"postgresql://clerk:right-one" + address + "missing", "3D000"},
                        Case{"postgresql://clerk:right-one" + address + "closed", "42501"},
                        Case{"postgresql://clerk" + address + "postgres?passfile=/nonexistent", ""}}) {
    const Error error = refusal(c.uri);
    CAPTURE(error.text());
    CHECK(error.disposition == Disposition::fatal);
    CHECK(error.code == c.code);
    CHECK(error.text().find("s3cr3t") == std::string::npos);
    CHECK(error.text().find('\n') == std::string::npos);
  }
}

TEST_CASE(
    "the refusal is understood in whatever language the server speaks, and too many connections is retry") {
  const test::PostgresServer server{
      {.settings = {{"max_connections", "4"}, {"superuser_reserved_connections", "0"}}}};
  std::vector<pg::Session> sessions;
  while (auto session = pg::Session::connect({.uri = server.uri()})) sessions.push_back(std::move(*session));
  const Error error = refusal(server.uri());
  CHECK(error.code == "53300");
  CHECK(error.disposition == Disposition::retry);
}

TEST_CASE("no server is retry, and so is one that accepts and says nothing, within connect_timeout") {
  test::PostgresServer server;
  const std::string uri = server.uri();
  server.pause();
  const Error silent = refusal(uri, Millis{300});
  CHECK(silent.disposition == Disposition::retry);
  CHECK(silent.message == "no answer from PostgreSQL within 1000 ms");
  server.resume();
  server.stop(test::StopMode::immediate);
  CHECK(refusal(uri).disposition == Disposition::retry);
  server.start();
  CHECK(pg::Session::connect({.uri = uri}).has_value());
}
}  // namespace outbox
