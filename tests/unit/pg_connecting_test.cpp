#include <doctest/doctest.h>

#include <algorithm>

#include "pg/libpq.hpp"

namespace outbox::pg {
namespace {

std::string value(const ConnectOptions& options, std::string_view name) {
  const auto keywords = connection_keywords(options).value();
  CHECK(std::count_if(keywords.begin(), keywords.end(), [&](const auto& k) { return k.first == name; }) <= 1);
  const auto found =
      std::find_if(keywords.begin(), keywords.end(), [&](const auto& k) { return k.first == name; });
  return found == keywords.end() ? "" : found->second;
}

}  // namespace

TEST_CASE("defaults fill in what the uri leaves open, and the uri wins") {
  const ConnectOptions silent{.uri = "postgresql://u@h:1/d"};
  CHECK(value(silent, "host") == "h");
  CHECK(value(silent, "dbname") == "d");
  CHECK(value(silent, "application_name") == "outbox");
  CHECK(value(silent, "connect_timeout") == "5");
  CHECK(value(silent, "tcp_user_timeout") == "10000");
  CHECK(value(silent, "keepalives_idle") == "5");
  const ConnectOptions says{
      .uri = "host=h keepalives=0 connect_timeout=9 tcp_user_timeout=1 application_name='a b'"};
  CHECK(value(says, "keepalives") == "0");
  CHECK(value(says, "connect_timeout") == "9");
  CHECK(value(says, "tcp_user_timeout") == "1");
  CHECK(value(says, "application_name") == "a b");
}

TEST_CASE("texts are UTF-8 whatever the uri says") {
  CHECK(value({.uri = "client_encoding=LATIN1"}, "client_encoding") == "UTF8");
}

TEST_CASE("a uri that does not parse is fatal, with a reason and without any part of the password") {
  for (const std::string uri : {
           "postgresql://u:s3cr3t%ZZ@h/d",
           "postgresql://u:p@s3cr3t@h/d",
           "postgresql://u@h/d?s3cr3t=1",
           "postgresql://u:p@[::1/d?password=s3cr3t",
           "host=h password=a s3cr3t",
           "host=h password=a s3cr3t=1",
           "host=h password='s3cr3t",
           "=\"=s3cr3t",
       }) {
    CAPTURE(uri);
    const auto refused = connection_keywords({.uri = uri});
    REQUIRE(!refused);
    CHECK(refused.error().disposition == Disposition::fatal);
    CHECK(refused.error().text().find("s3cr3t") == std::string::npos);
  }
}

TEST_CASE("credentials are who connects and whom it trusts, and not where it connects to") {
  const std::string was = "postgresql://u:old@h:1/d?sslmode=verify-full&sslrootcert=/a";
  for (const char* is : {"postgresql://u:new@h:1/d?sslmode=verify-full&sslrootcert=/a",
                         "postgresql://other:old@h:1/d?sslmode=verify-full&sslrootcert=/a",
                         "postgresql://u@h:1/d?sslmode=verify-full&sslrootcert=/b&sslcert=/c&sslkey=/d"}) {
    CAPTURE(is);
    CHECK(differ_in_credentials_alone(was, is));
    CHECK(differ_in_credentials_alone(is, was));
  }
  for (const char* is : {"postgresql://u:new@h2:1/d?sslmode=verify-full&sslrootcert=/a",
                         "postgresql://u:new@h:2/d?sslmode=verify-full&sslrootcert=/a",
                         "postgresql://u:new@h:1/e?sslmode=verify-full&sslrootcert=/a",
                         "postgresql://u:new@h:1/d?sslmode=disable&sslrootcert=/a", "postgresql://["}) {
    CAPTURE(is);
    CHECK(!differ_in_credentials_alone(was, is));
  }
  CHECK(!differ_in_credentials_alone(was, was));
  // A database that is not named is the user's.
  CHECK(!differ_in_credentials_alone("postgresql://u@h", "postgresql://other@h"));
  CHECK(differ_in_credentials_alone("postgresql://u:a@h", "postgresql://u:b@h"));
}

TEST_CASE("the SQLSTATE of a refused connection is found in the verbose message, in any language") {
  const auto wrong = connect_error(
      "connection to server at \"127.0.0.1\", port 5432 failed: FATAL:  28P01: password authentication "
      "failed for user \"u\"\n"
      "LOCATION:  auth_failed, auth.c:326\n");
  CHECK(wrong.code == "28P01");
  CHECK(wrong.disposition == Disposition::fatal);
  CHECK(wrong.message.ends_with("failed: FATAL: password authentication failed for user \"u\""));
  const auto german = connect_error(
      "Verbindung zu Server auf »h« fehlgeschlagen: SCHWERER FEHLER:  3D000: Datenbank »d« gibt es nicht\n");
  CHECK(german.code == "3D000");
  CHECK(german.disposition == Disposition::fatal);
}

TEST_CASE("a server that cannot take us now, and one that is not there, are tried again") {
  const auto starting = connect_error("failed: FATAL:  57P03: the database system is starting up\n");
  CHECK(starting.code == "57P03");
  CHECK(starting.disposition == Disposition::retry);
  CHECK(connect_error("failed: FATAL:  53300: sorry, too many clients already\n").disposition ==
        Disposition::retry);
  const auto absent =
      connect_error("connection to server at \"h\" failed: Connection refused\n\tIs the server running?\n");
  CHECK(absent.code.empty());
  CHECK(absent.disposition == Disposition::retry);
  CHECK(absent.message.find('\n') == std::string::npos);
}
}  // namespace outbox::pg
