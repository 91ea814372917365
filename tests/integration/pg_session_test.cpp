#include <doctest/doctest.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <thread>

#include "tests/support/eventually.hpp"
#include "tests/support/postgres.hpp"

namespace outbox {
namespace {

using pg::Params;
using pg::Session;
using test::must;

std::string setting(Session& session, const std::string& name) {
  return std::string(must(session.exec("SHOW " + name)).text(0, 0));
}

}  // namespace

TEST_CASE(
    "a dead peer is noticed: keepalives and tcp_user_timeout are set on the socket, and what the uri sets "
    "wins") {
  const test::TestDatabase database;
  auto session = must(Session::connect({.uri = database.uri() + "?keepalives_idle=7&application_name=mine"}));
  const auto option = [&](int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    REQUIRE(::getsockopt(PQsocket(session.native()), level, name, &value, &size) == 0);
    return value;
  };
  CHECK(option(SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(option(IPPROTO_TCP, TCP_KEEPIDLE) == 7);
  CHECK(option(IPPROTO_TCP, TCP_KEEPINTVL) == 2);
  CHECK(option(IPPROTO_TCP, TCP_KEEPCNT) == 3);
  CHECK(option(IPPROTO_TCP, TCP_USER_TIMEOUT) == 10'000);
  CHECK(setting(session, "application_name") == "mine");
  CHECK(setting(session, "client_encoding") == "UTF8");
}

TEST_CASE("text and binary times are read alike, whatever DateStyle and TimeZone the role has") {
  const test::TestDatabase database;
  database.session().exec("ALTER DATABASE " + database.name() + " SET datestyle = 'German'").value();
  database.session().exec("ALTER DATABASE " + database.name() + " SET timezone = 'Asia/Kathmandu'").value();
  auto session = database.session();
  CHECK(setting(session, "TimeZone") == "Asia/Kathmandu");
  const auto sql = "SELECT '2026-11-29 16:59:37.123456+00'::timestamptz, '-infinity'::timestamptz";
  const auto text = must(session.exec(sql));
  const auto binary = must(session.exec(sql, {}, pg::Format::binary));
  CHECK(rfc3339(text.timestamptz(0, 0)) == "2026-11-29T16:59:37.123456Z");
  CHECK(binary.timestamptz(0, 0) == text.timestamptz(0, 0));
  CHECK(text.timestamptz(0, 1) == WallTime::min());
  CHECK(binary.timestamptz(0, 1) == WallTime::min());
}

TEST_CASE("a statement is prepared once per text, and survives the loss of its plan") {
  const test::TestDatabase database;
  auto session = database.session();
  const auto plans = [&] {
    return must(session.exec("SELECT count(*) FROM pg_prepared_statements")).integer(0, 0);
  };
  const std::string sql = "SELECT $1::int + 1";
  CHECK(must(session.exec_prepared(sql, Params{}.i32(1))).integer(0, 0) == 2);
  CHECK(must(session.exec_prepared(sql, Params{}.i32(2))).integer(0, 0) == 3);
  CHECK(plans() == 1);
  must(session.exec("DISCARD ALL"));
  CHECK(must(session.exec_prepared(sql, Params{}.i32(3))).integer(0, 0) == 4);
  CHECK(plans() == 1);
  must(session.exec_script("CREATE TABLE t (a int); INSERT INTO t VALUES (1)"));
  CHECK(must(session.exec_prepared("SELECT * FROM t", {})).size() == 1);
  must(session.exec_script("ALTER TABLE t ADD b int"));
  CHECK(must(session.exec_prepared("SELECT * FROM t", {})).is_null(0, 1));
}

TEST_CASE("inside a transaction a lost plan asks for the whole transaction again") {
  const test::TestDatabase database;
  auto session = database.session();
  must(session.exec_prepared("SELECT 1", {}));
  must(session.exec("DEALLOCATE ALL"));
  const auto attempt = [](Session& s) -> Status {
    auto rows = s.exec_prepared("SELECT 1", {});
    if (!rows) return failure(rows.error());
    return {};
  };
  const Status first = session.transaction(attempt);
  REQUIRE(!first);
  CHECK(first.error().disposition == Disposition::retry);
  CHECK(session.transaction(attempt).has_value());
}

TEST_CASE(
    "transaction() commits what its body did, and rolls back on an error, an exception and an ignored "
    "failure") {
  const test::TestDatabase database;
  auto session = database.session();
  must(session.exec_script("CREATE TABLE t (a int PRIMARY KEY)"));
  const auto insert = [](Session& s, int a) { return s.exec("INSERT INTO t VALUES ($1)", Params{}.i32(a)); };
  const auto rows = [&] { return must(session.exec("SELECT count(*) FROM t")).integer(0, 0); };

  CHECK(
      session.transaction([&](Session& s) -> Status { return insert(s, 1).map([](auto&&) {}); }).has_value());
  CHECK(rows() == 1);
  const Status refused = session.transaction([&](Session& s) -> Status {
    must(insert(s, 2));
    return failure(Disposition::quarantine, "no");
  });
  CHECK(refused.error().message == "no");
  CHECK_THROWS(static_cast<void>(session.transaction([&](Session& s) -> Status {
    must(insert(s, 3));
    throw std::runtime_error("thrown");
  })));
  const Status ignored = session.transaction([&](Session& s) -> Status {
    must(insert(s, 4));
    static_cast<void>(insert(s, 1));  // 23505
    return {};
  });
  REQUIRE(!ignored);
  CHECK(ignored.error().disposition == Disposition::fatal);
  CHECK(rows() == 1);
  CHECK(!session.in_transaction());
}

TEST_CASE("a connection lost inside a transaction is certain, lost in a lone statement it is in doubt") {
  const test::TestDatabase database;
  auto admin = database.session();
  for (const bool inside : {true, false}) {
    auto session = database.session();
    const auto pid = must(session.exec("SELECT pg_backend_pid()")).integer(0, 0);
    if (inside) must(session.exec("BEGIN"));
    must(admin.exec("SELECT pg_terminate_backend($1, 10000)", Params{}.i32(static_cast<std::int32_t>(pid))));
    const auto lost = session.exec("SELECT 1");
    REQUIRE(!lost);
    CHECK(lost.error().disposition == (inside ? Disposition::reconnect : Disposition::in_doubt));
    CHECK(session.broken());
  }
}

TEST_CASE("a COMMIT whose reply is lost is in doubt") {
  const test::TestDatabase database;
  auto session = database.session();
  auto admin = database.session();
  must(session.exec_script("CREATE TABLE t (a int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)"));
  // The constraint is checked at COMMIT, which then waits for the admin's row, and dies waiting.
  must(admin.exec_script("BEGIN; INSERT INTO t VALUES (1)"));
  const auto pid = must(session.exec("SELECT pg_backend_pid()")).integer(0, 0);
  std::thread killer([&] {
    auto third = database.session();
    const auto waiting = [&] {
      return must(third.exec(
                      "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'",
                      Params{}.i32(static_cast<std::int32_t>(pid))))
                 .integer(0, 0) == 1;
    };
    test::eventually("the COMMIT waits", waiting);
    must(third.exec("SELECT pg_terminate_backend($1)", Params{}.i32(static_cast<std::int32_t>(pid))));
  });
  const Status lost = session.transaction(
      [](Session& s) -> Status { return s.exec("INSERT INTO t VALUES (1)").map([](auto&&) {}); });
  killer.join();
  REQUIRE(!lost);
  CHECK(lost.error().disposition == Disposition::in_doubt);
}

TEST_CASE("a failed script names the line") {
  const test::TestDatabase database;
  auto session = database.session();
  const Status failed = session.exec_script("SELECT 1;\n\nSELEKT 2;\n");
  REQUIRE(!failed);
  CHECK(failed.error().code == "42601");
  CHECK(failed.error().message.ends_with("at line 3"));
}

TEST_CASE("cancel() from another thread ends the statement with retry") {
  const test::TestDatabase database;
  auto session = database.session();
  auto admin = database.session();
  std::thread canceller([&] {
    const auto sleeping = [&] {
      return must(admin.exec("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"))
                 .integer(0, 0) > 0;
    };
    test::eventually("it sleeps", sleeping);
    session.cancel();
  });
  const auto cancelled = session.exec("SELECT pg_sleep(60)");
  canceller.join();
  REQUIRE(!cancelled);
  CHECK(cancelled.error().code == "57014");
  CHECK(cancelled.error().disposition == Disposition::retry);
  CHECK(!session.broken());
}
}  // namespace outbox
