// The trigger that wakes a sleeping relay.

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <string>

#include "pg/connection.hpp"
#include "sql_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace outbox {
namespace {

using test::ask;
using test::must;
using test::OutboxDatabase;

constexpr std::string_view insert_one = "INSERT INTO outbox_msg (topic) VALUES ('t')";

// Listens, and counts the notifications of a transaction: those that come before a mark sent right behind it.
class Ear {
 public:
  explicit Ear(OutboxDatabase& outbox)
      : outbox_(outbox),
        connection_(
            loop_,
            {.connect = {.uri = outbox.uri()},
             .backoff = {},
             .on_connect = {"LISTEN outbox_msg", "LISTEN mark"}},
            {.on_up = [this] { up_ = true; },
             .on_down = [](const Error&) {},
             .on_notify = [this](std::string_view channel) { (channel == "mark" ? marks_ : heard_) += 1; }}) {
    connection_.start();
    wait_until([this] { return up_; });
  }
  ~Ear() { connection_.stop(); }

  int heard() {
    const int mark = marks_ + 1;
    ask(outbox_.sql(), "NOTIFY mark");
    wait_until([&] { return marks_ == mark; });
    return std::exchange(heard_, 0);
  }

 private:
  template <class Condition>
  void wait_until(Condition condition) {
    test::eventually("a notification", [&] {
      loop_.restart();
      loop_.run_for(Millis{5});
      return condition();
    });
  }

  OutboxDatabase& outbox_;
  boost::asio::io_context loop_;
  pg::Connection connection_;
  bool up_ = false;
  int marks_ = 0;
  int heard_ = 0;
};

void sleep_for(OutboxDatabase& outbox, Millis how_long) {
  ask(outbox.sql(),
      "SELECT setval('outbox_asleep', (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1)",
      pg::Params{}.i64(how_long.count()));
}

}  // namespace

TEST_CASE("an insert notifies only while the relay is asleep, once a transaction") {
  OutboxDatabase outbox;
  Ear ear(outbox);
  ask(outbox.sql(), insert_one);
  CHECK(ear.heard() == 0);  // never asleep yet
  sleep_for(outbox, Millis{60'000});
  ask(outbox.sql(), insert_one);
  CHECK(ear.heard() == 1);
  must(outbox.sql().exec_script(
      "INSERT INTO outbox_msg (topic) VALUES ('a'), ('b'); INSERT INTO outbox_msg (topic) VALUES ('c')"));
  CHECK(ear.heard() == 1);
  sleep_for(outbox, Millis{-1000});
  ask(outbox.sql(), insert_one);
  CHECK(ear.heard() == 0);
}

TEST_CASE("a relay that died asleep stops costing notifications by itself") {
  OutboxDatabase outbox;
  Ear ear(outbox);
  sleep_for(outbox, Millis{300});
  test::eventually("the flag's end", [&] {
    ask(outbox.sql(), insert_one);
    return ear.heard() == 0;
  });
}

TEST_CASE("a rolled back insert notifies nobody") {
  OutboxDatabase outbox;
  Ear ear(outbox);
  sleep_for(outbox, Millis{60'000});
  must(outbox.sql().exec_script("BEGIN; INSERT INTO outbox_msg (topic) VALUES ('t'); ROLLBACK"));
  CHECK(ear.heard() == 0);
}

TEST_CASE("a role that may only INSERT wakes the relay, and can't read or set the flag") {
  OutboxDatabase outbox;
  outbox.with_roles();
  Ear ear(outbox);
  sleep_for(outbox, Millis{60'000});
  auto app = outbox.as("outbox_app");
  ask(app, insert_one);
  CHECK(ear.heard() == 1);
  CHECK(test::refusal(app, "SELECT last_value FROM outbox_asleep") == "42501");
  CHECK(test::refusal(app, "SELECT setval('outbox_asleep', 1)") == "42501");
}

TEST_CASE("the flag is seen at once, also by a REPEATABLE READ transaction that began before it was set") {
  OutboxDatabase outbox;
  Ear ear(outbox);
  auto app = outbox.session();
  must(app.exec_script("BEGIN ISOLATION LEVEL REPEATABLE READ"));
  ask(app, "SELECT count(*) FROM outbox_msg");
  sleep_for(outbox, Millis{60'000});
  ask(app, insert_one);
  must(app.exec_script("COMMIT"));
  CHECK(ear.heard() == 1);
}

TEST_CASE("the trigger's rights can't be borrowed through a search_path or a temporary table") {
  OutboxDatabase outbox;
  outbox.with_roles();
  Ear ear(outbox);
  ask(outbox.sql(), "CREATE SCHEMA theirs AUTHORIZATION outbox_app");
  auto app = outbox.as("outbox_app");
  must(app.exec_script(R"(
      CREATE TEMPORARY TABLE outbox_asleep (last_value bigint);
      CREATE FUNCTION theirs.pg_notify(text, text) RETURNS void LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'borrowed'; END $$;
      SET search_path = theirs, pg_catalog, public)"));
  sleep_for(outbox, Millis{60'000});
  ask(app, "INSERT INTO public.outbox_msg (topic) VALUES ('t')");
  CHECK(ear.heard() == 1);
}

TEST_CASE("no hint is sent while another program fills the server's queue of notifications") {
  OutboxDatabase outbox;
  Ear ear(outbox);
  sleep_for(outbox, Millis{60'000});
  ask(outbox.sql(), insert_one);
  CHECK(ear.heard() == 1);
  // As large a share of the queue's 8 GB as a test can fill: 20 pages.
  must(outbox.sql().exec_script(
      "CREATE OR REPLACE FUNCTION outbox_hints_fit() RETURNS boolean LANGUAGE sql VOLATILE "
      "RETURN pg_notification_queue_usage() < 0.00002"));
  auto listener = outbox.session();
  must(listener.exec("LISTEN other"));
  must(listener.exec_script("BEGIN; SELECT 1"));
  ask(outbox.sql(), "SELECT count(pg_notify('other', g || repeat('x', 7900))) FROM generate_series(1, 60) g");
  CHECK(ask(outbox.sql(), "SELECT outbox_hints_fit()") == "f");
  CHECK(test::refusal(outbox.sql(), insert_one) == "accepted");
  CHECK(ear.heard() == 0);
  must(listener.exec_script("COMMIT; UNLISTEN *"));
}

TEST_CASE("declaring oneself asleep writes nothing that has to be flushed") {
  OutboxDatabase outbox;
  must(outbox.sql().exec_script("BEGIN"));
  sleep_for(outbox, Millis{60'000});
  CHECK(ask(outbox.sql(), "SELECT pg_current_xact_id_if_assigned()") == "null");
  must(outbox.sql().exec_script("ROLLBACK"));
}

}  // namespace outbox
