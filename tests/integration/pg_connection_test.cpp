#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "pg/connection.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/postgres.hpp"

namespace outbox {
namespace {

using pg::Connection;
using pg::Params;
using pg::Rows;
using test::must;
using Answer = Result<std::vector<Rows>>;

std::shared_ptr<const std::string> sql(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

const auto select_int = sql("SELECT $1::int4");
const auto backend_pid = sql("SELECT pg_backend_pid()");
const auto sleep_long = sql("SELECT pg_sleep(60)");

/// A Connection with its loop in the test's thread, and what it told.
struct Link {
  boost::asio::io_context loop;
  int ups = 0;
  std::vector<Error> downs;
  std::vector<std::string> channels;
  std::unique_ptr<Connection> connection;

  explicit Link(Connection::Options options) {
    options.backoff = {Millis{20}, Millis{100}};
    connection = std::make_unique<Connection>(
        loop, std::move(options),
        Connection::Events{.on_up = [this] { ++ups; },
                           .on_down = [this](const Error& e) { downs.push_back(e); },
                           .on_notify = [this](std::string_view c) { channels.emplace_back(c); }});
    connection->start();
  }
  explicit Link(const std::string& uri) : Link(Connection::Options{.connect = {.uri = uri}}) {}

  void until(const std::function<bool()>& condition, Millis deadline = test::patience) {
    const MonoTime end = std::chrono::steady_clock::now() + deadline;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error("the condition did not come true");
      loop.restart();
      loop.run_one_for(Millis{20});
    }
  }
  void until_up(int times = 1) {
    until([&] { return ups >= times && connection->up(); });
  }
  std::shared_ptr<std::optional<Answer>> run(std::vector<pg::Statement> statements,
                                             Millis deadline = Millis{30'000}) {
    auto slot = std::make_shared<std::optional<Answer>>();
    connection->run({std::move(statements), deadline}, [slot](Answer a) { *slot = std::move(a); });
    return slot;
  }
  Answer answer(std::vector<pg::Statement> statements, Millis deadline = Millis{30'000}) {
    const auto slot = run(std::move(statements), deadline);
    until([&] { return slot->has_value(); });
    return std::move(**slot);
  }
  std::int32_t pid() {
    return static_cast<std::int32_t>(must(answer({{backend_pid, {}}})).at(0).integer(0, 0));
  }
};

void until_sleeping(pg::Session& admin) {
  test::eventually("the backend sleeps", [&] {
    return must(admin.exec("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = "
                           "current_database()"))
               .integer(0, 0) > 0;
  });
}

void terminate(pg::Session& admin, std::int32_t pid) {
  must(admin.exec("SELECT pg_terminate_backend($1, 10000)", Params{}.i32(pid)));
}

}  // namespace

TEST_CASE("segments answer in order, two hundred of them on the way at once") {
  const test::TestDatabase database;
  Link link{database.uri()};
  link.until_up();
  std::vector<std::int64_t> order;
  for (int i = 0; i < 200; ++i) {
    link.connection->run({.statements = {{select_int, Params{}.i32(i)}, {select_int, Params{}.i32(-i)}}},
                         [&order](Answer a) {
                           const auto rows = must(std::move(a));
                           CHECK(rows.at(0).integer(0, 0) == -rows.at(1).integer(0, 0));
                           order.push_back(rows.at(0).integer(0, 0));
                         });
  }
  CHECK(order.empty());
  CHECK(link.connection->pending() == 200);
  link.until([&] { return order.size() == 200; });
  for (int i = 0; i < 200; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
  CHECK(link.connection->pending() == 0);
  const auto plans =
      must(link.answer({{sql("SELECT count(*) FROM pg_prepared_statements WHERE statement = $1"),
                         Params{}.text(*select_int)}}));
  CHECK(plans.at(0).integer(0, 0) == 1);
}

TEST_CASE("a segment is one transaction, and its error harms no other") {
  const test::TestDatabase database;
  must(database.session().exec_script("CREATE TABLE t (a int PRIMARY KEY)"));
  Link link{database.uri()};
  link.until_up();
  const auto insert = sql("INSERT INTO t VALUES ($1)");
  const auto count = sql("SELECT count(*) FROM t");
  const auto before = link.run({{insert, Params{}.i32(1)}});
  const auto failing = link.run({{insert, Params{}.i32(2)}, {insert, Params{}.i32(1)}, {count, {}}});
  const auto after = link.run({{insert, Params{}.i32(3)}, {count, {}}});
  link.until([&] { return after->has_value(); });
  CHECK((*before)->has_value());
  REQUIRE(!(*failing)->has_value());
  CHECK((*failing)->error().code == "23505");
  CHECK((*failing)->error().disposition == Disposition::quarantine);
  CHECK(must(**after).at(1).integer(0, 0) == 2);
  CHECK(link.downs.empty());
}

TEST_CASE("a statement that cannot be prepared fails its own segment only, and can be tried again") {
  const test::TestDatabase database;
  Link link{database.uri()};
  link.until_up();
  const auto missing = sql("SELECT a FROM later");
  const auto other = sql("SELECT 7");
  const auto first = link.run({{missing, {}}, {other, {}}});
  const auto second = link.run({{other, {}}});  // its plan was to be made by the segment that fails
  link.until([&] { return second->has_value(); });
  CHECK((*first)->error().code == "42P01");
  CHECK(must(**second).at(0).integer(0, 0) == 7);
  must(database.session().exec_script("CREATE TABLE later (a int); INSERT INTO later VALUES (1)"));
  CHECK(must(link.answer({{missing, {}}, {other, {}}})).at(1).integer(0, 0) == 7);
}

TEST_CASE("a constraint that fails at the commit is the segment's error, and the pipeline stays in step") {
  const test::TestDatabase database;
  must(database.session().exec_script("CREATE TABLE t (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)"));
  Link link{database.uri()};
  link.until_up();
  const auto insert = sql("INSERT INTO t VALUES ($1)");
  const auto both = link.run({{insert, Params{}.i32(1)}, {insert, Params{}.i32(1)}});
  const auto next = link.run({{select_int, Params{}.i32(5)}});
  link.until([&] { return next->has_value(); });
  REQUIRE(!(*both)->has_value());
  CHECK((*both)->error().code == "23505");
  if ((*next)->has_value()) {
    CHECK(must(**next).at(0).integer(0, 0) == 5);
  } else {  // a libpq that gets out of step here is noticed, and the connection is made again
    CHECK((*next)->error().disposition == Disposition::in_doubt);
    link.until_up(2);
  }
  CHECK(must(link.answer({{sql("SELECT count(*) FROM t"), {}}})).at(0).integer(0, 0) == 0);
}

TEST_CASE("DISCARD ALL costs named plans one retry, and unnamed statements nothing") {
  const test::TestDatabase database;
  for (const auto naming : {pg::Naming::named, pg::Naming::unnamed}) {
    Link link{Connection::Options{.connect = {.uri = database.uri()}, .naming = naming}};
    link.until_up();
    const auto ask = [&](int i) { return link.answer({{select_int, Params{}.i32(i)}}); };
    CHECK(must(ask(1)).at(0).integer(0, 0) == 1);
    const auto discarded = link.answer({{sql("DEALLOCATE ALL"), {}}});
    CHECK(discarded.has_value());
    const auto second = ask(2);
    if (naming == pg::Naming::named) {
      REQUIRE(!second);
      CHECK(second.error().disposition == Disposition::retry);
    } else {
      CHECK(must(second).at(0).integer(0, 0) == 2);
      const auto plans =
          must(link.answer({{sql("SELECT count(*) FROM pg_prepared_statements WHERE name <> ''"), {}}}));
      CHECK(plans.at(0).integer(0, 0) == 0);
    }
    CHECK(must(ask(3)).at(0).integer(0, 0) == 3);
  }
}

TEST_CASE(
    "a backend that dies in a statement: nothing took effect, what came behind is in doubt, and it "
    "reconnects") {
  const test::TestDatabase database;
  auto admin = database.session();
  Link link{database.uri()};
  link.until_up();
  const auto pid = link.pid();
  const auto dying = link.run({{sleep_long, {}}});
  const auto behind = link.run({{select_int, Params{}.i32(1)}});
  until_sleeping(admin);
  terminate(admin, pid);
  link.until_up(2);
  REQUIRE(dying->has_value());
  CHECK((*dying)->error().code == "57P01");
  CHECK((*dying)->error().disposition == Disposition::reconnect);
  CHECK((*behind)->error().disposition == Disposition::in_doubt);
  CHECK(link.downs.size() == 1);
  CHECK(link.pid() != pid);
}

TEST_CASE("a server that vanishes without a word leaves sent segments in doubt") {
  test::PostgresServer server;
  Link link{server.uri()};
  link.until_up();
  const auto sent = link.run({{sleep_long, {}}});
  auto admin = must(pg::Session::connect({.uri = server.uri()}));
  until_sleeping(admin);
  server.kill();
  link.until([&] { return sent->has_value(); });
  CHECK((*sent)->error().disposition == Disposition::in_doubt);
  const auto refused = link.run({{select_int, Params{}.i32(1)}});
  CHECK(!refused->has_value());  // never from inside run()
  link.until([&] { return refused->has_value(); });
  CHECK((*refused)->error().disposition == Disposition::reconnect);
  link.until([&] { return link.downs.size() >= 3; });  // one loss, then one a failed attempt
  server.start();
  link.until_up(2);
  CHECK(must(link.answer({{select_int, Params{}.i32(1)}})).at(0).integer(0, 0) == 1);
}

TEST_CASE("an idle connection notices that the server stopped, and says the server's reason once") {
  test::PostgresServer server;
  Link link{server.uri()};
  link.until_up();
  server.stop();
  link.until([&] { return !link.downs.empty(); });
  CHECK(link.downs.front().code == "57P01");
  CHECK(link.downs.front().disposition == Disposition::reconnect);
  server.start();
  link.until_up(2);
}

TEST_CASE(
    "a segment whose wait for the synchronous standby is cancelled is in doubt, though PostgreSQL says it is "
    "done") {
  const test::PostgresServer server;
  const test::TestDatabase database(server.uri());
  auto admin = database.session();
  must(admin.exec("CREATE TABLE written (n int)"));
  Link link{database.uri()};
  link.until_up();
  must(admin.exec("ALTER SYSTEM SET synchronous_standby_names = '*'"));  // there is none
  must(admin.exec("SELECT pg_reload_conf()"));
  test::eventually("commits wait", [&] {
    return must(link.answer({{sql("SHOW synchronous_standby_names"), {}}})).at(0).text(0, 0) == "*";
  });
  const auto first = link.answer({{sql("INSERT INTO written VALUES (1)"), {}}}, Millis{300});
  REQUIRE(!first);
  CHECK(first.error().disposition == Disposition::in_doubt);
  CHECK(link.answer({{select_int, Params{}.i32(7)}}).has_value());  // what writes nothing waits for nobody
  CHECK(must(admin.exec("SELECT count(*) FROM written")).integer(0, 0) == 1);
  CHECK(link.downs.empty());
  must(admin.exec("ALTER SYSTEM RESET synchronous_standby_names"));  // else the database's end waits, too
  must(admin.exec("SELECT pg_reload_conf()"));
}

TEST_CASE("at its deadline a segment is cancelled and the connection goes on") {
  const test::TestDatabase database;
  Link link{database.uri()};
  link.until_up();
  const auto late = link.answer({{sleep_long, {}}}, Millis{100});
  REQUIRE(!late);
  CHECK(late.error().code == "57014");
  CHECK(late.error().disposition == Disposition::retry);
  CHECK(link.downs.empty());
  CHECK(must(link.answer({{select_int, Params{}.i32(1)}})).at(0).integer(0, 0) == 1);
}

TEST_CASE("a server that does not even cancel is dropped, and the loop was never blocked") {
  test::PostgresServer server;
  Link link{server.uri()};
  link.until_up();
  const auto late = link.run({{sleep_long, {}}}, Millis{100});
  auto admin = must(pg::Session::connect({.uri = server.uri()}));
  until_sleeping(admin);
  server.pause();
  const MonoTime start = std::chrono::steady_clock::now();
  link.until([&] { return late->has_value(); });
  CHECK(std::chrono::steady_clock::now() - start < Millis{4000});
  CHECK((*late)->error().disposition == Disposition::in_doubt);
  CHECK(!link.connection->up());
  server.resume();
  link.until_up(2);
}

TEST_CASE("a NOTIFY arrives while idle, behind a reply, and after a reconnect") {
  const test::TestDatabase database;
  auto admin = database.session();
  Link link{Connection::Options{.connect = {.uri = database.uri()}, .on_connect = {"LISTEN \"outbox_msg\""}}};
  link.until_up();
  must(admin.exec("NOTIFY outbox_msg"));
  link.until([&] { return link.channels.size() == 1; });
  CHECK(link.channels.front() == "outbox_msg");
  must(link.answer({{sql("NOTIFY outbox_msg"), {}}}));
  link.until([&] { return link.channels.size() == 2; });
  terminate(admin, link.pid());
  link.until_up(2);
  must(admin.exec("NOTIFY outbox_msg"));
  link.until([&] { return link.channels.size() == 3; });
}

TEST_CASE("a failing first statement is a failed attempt") {
  const test::TestDatabase database;
  Link link{Connection::Options{.connect = {.uri = database.uri()}, .on_connect = {"SELECT nothing"}}};
  link.until([&] { return link.downs.size() >= 2; });
  CHECK(link.ups == 0);
  CHECK(link.downs.front().code == "42703");
  CHECK(link.downs.front().disposition == Disposition::fatal);
}

TEST_CASE("large parameters and results go through whole, with segments behind them") {
  const test::TestDatabase database;
  Link link{database.uri()};
  link.until_up();
  const std::string large(20'000'000, 'x');
  std::vector<std::int64_t> ids(100'000);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  const auto echo = link.run({{sql("SELECT $1::text"), Params{}.text(large)}});
  const auto sum = link.run({{sql("SELECT sum(i)::int8 FROM unnest($1::int8[]) i"), Params{}.i64s(ids)}});
  const auto many = link.run({{sql("SELECT i, repeat('y', 300) FROM generate_series(1, 5000) i"), {}}});
  link.until([&] { return many->has_value(); });
  CHECK(must(**echo).at(0).text(0, 0) == large);
  CHECK(must(**sum).at(0).integer(0, 0) == 4'999'950'000);
  CHECK(must(**many).at(0).size() == 5000);
  CHECK(must(**many).at(0).integer(4999, 0) == 5000);
}

TEST_CASE("a segment that could not be sent up to its SYNC is known to have had no effect") {
  test::PostgresServer server;
  Link link{server.uri()};
  link.until_up();
  server.pause();
  const std::string large(50'000'000, 'x');  // more than the socket's buffers hold
  const auto stuck = link.run({{sql("SELECT length($1)"), Params{}.text(large)}}, Millis{50});
  const auto behind = link.run({{select_int, Params{}.i32(1)}});
  link.until([&] { return behind->has_value(); });
  CHECK((*stuck)->error().disposition == Disposition::reconnect);
  CHECK((*behind)->error().disposition == Disposition::reconnect);
  server.resume();
  link.until_up(2);
}

TEST_CASE("one text with parameters of two types is two plans, and neither reads the other's bytes") {
  const test::TestDatabase database;
  Link link{database.uri()};
  link.until_up();
  const auto echo = sql("SELECT $1");
  for (int round = 0; round < 2; ++round) {
    CHECK(must(link.answer({{echo, Params{}.i64(7)}})).at(0).integer(0, 0) == 7);
    CHECK(must(link.answer({{echo, Params{}.i32(-7)}})).at(0).integer(0, 0) == -7);
    CHECK(must(link.answer({{echo, Params{}.text("x")}})).at(0).text(0, 0) == "x");
  }
}

TEST_CASE("stop() answers what is on the way as in doubt, before it returns") {
  const test::TestDatabase database;
  Link link{database.uri()};
  link.until_up();
  const auto sent = link.run({{sleep_long, {}}});
  link.connection->stop();
  REQUIRE(sent->has_value());
  CHECK((*sent)->error().disposition == Disposition::in_doubt);
}

TEST_CASE("stop() answers what is pending and no callback comes later, also from inside a callback") {
  const test::TestDatabase database;
  Link link{database.uri()};
  link.until_up();
  int answers = 0;
  for (int i = 0; i < 10; ++i) {
    link.connection->run({.statements = {{select_int, Params{}.i32(i)}}}, [&](const Answer&) {
      ++answers;
      if (answers == 3) link.connection->stop();
    });
  }
  link.until([&] { return answers == 10; });
  const auto ups = link.ups;
  link.connection->run({.statements = {{select_int, Params{}.i32(1)}}}, [&](const Answer&) { ++answers; });
  link.loop.restart();
  link.loop.run();  // returns: nothing is left to wait for
  CHECK(answers == 10);
  CHECK(link.ups == ups);
  CHECK(link.downs.empty());
}

TEST_CASE("a connection may be destroyed with segments on the way, and no callback comes") {
  const test::TestDatabase database;
  Link link{database.uri()};
  link.until_up();
  int answers = 0;
  link.connection->run({.statements = {{sleep_long, {}}}}, [&](const Answer&) { ++answers; });
  link.connection.reset();
  link.loop.restart();
  link.loop.run();
  CHECK(answers == 0);
}

TEST_CASE("a host's name is looked up, with every address of it, and one that is not found is tried again") {
  const test::TestDatabase database;
  std::string uri = database.uri();
  uri.replace(uri.find("127.0.0.1"), 9, "localhost");
  Link link{uri};
  link.until_up();
  Link nowhere{"postgresql://u@no-such-host.invalid/d"};
  nowhere.until([&] { return !nowhere.downs.empty(); }, Millis{90'000});
  CHECK(nowhere.downs.front().disposition == Disposition::retry);
  CHECK(nowhere.downs.front().message.starts_with("host 'no-such-host.invalid' was not found"));
}

TEST_CASE("a wrong uri or password is told at every attempt and never shows the password") {
  Link link{"postgresql://u:s3cr%ZZt@127.0.0.1:1/x"};
  link.until([&] { return link.downs.size() >= 2; });
  CHECK(link.downs.front().disposition == Disposition::fatal);
  CHECK(link.downs.front().text().find("s3cr") == std::string::npos);
}
}  // namespace outbox
