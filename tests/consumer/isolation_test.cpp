// Messages that share a transaction do not reach one another, nor whoever has the connection next; and a
// commit that may not be where it has to be moves nothing.

#include <doctest/doctest.h>

#include <algorithm>
#include <future>

#include "consumer/core/statement_kind.hpp"
#include "letters.hpp"
#include "outbox/inbox.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

std::vector<Letter> three() {
  return {letter(v7(1), "{}", 1), letter(v7(2), "{}", 2), letter(v7(3), "{}", 3)};
}

void await_standby_wait(pg::Session& session) {
  eventually("a commit waits for the standby", [&] {
    return must(session.exec(
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = "
                    "current_database()"))
               .integer(0, 0) > 0;
  });
}

}  // namespace

TEST_CASE("a statement's kind is read behind comments, in any case, and never from half a word") {
  using enum StatementKind;
  for (const char* sql : {"COMMIT", "/* x */ commit", "-- a\n ; /* /* nested */ */ Rollback", "END",
                          "START TRANSACTION", "PREPARE TRANSACTION 'x'", "abort;"})
    CHECK_MESSAGE(kind_of(sql) == of_transaction, sql);
  for (const char* sql :
       {"SET x = 1", "set session x = 1", "LISTEN a", "PREPARE p AS SELECT 1", "RESET ALL", "DISCARD ALL",
        "SELECT pg_advisory_lock(1)", "DECLARE c CURSOR WITH HOLD FOR SELECT 1"})
    CHECK_MESSAGE(kind_of(sql) == of_session, sql);
  for (const char* sql :
       {"SET LOCAL x = 1", "/**/set/**/local x = 1", "SELECT set_config('a', 'b', true)",
        "CREATE TEMP TABLE t ()", "create  temporary table t ()", "SET CONSTRAINTS ALL DEFERRED", "DO $$ $$"})
    CHECK_MESSAGE(kind_of(sql) == for_rest_of_transaction, sql);
  CHECK(kind_of("SAVEPOINT a") == savepoint);
  CHECK(kind_of("RELEASE SAVEPOINT outbox_message") == of_library);
  for (const char* sql : {"ROLLBACK TO a", "rollback work to savepoint a", "RELEASE a", "SELECT 1",
                          "UPDATE commits SET a = 1", "endow", "SELECT pg_advisory_xact_lock(1)", ""})
    CHECK_MESSAGE(kind_of(sql) == plain, sql);
}

TEST_CASE("a savepoint of one message's handler is out of reach of the messages behind it") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  const auto batch = three();
  const auto outcomes = inbox.process(records(batch), [](Transaction& tx, const Message& message) {
    if (message.offset() == 2) return static_cast<void>(tx.exec("ROLLBACK TO SAVEPOINT work"));
    tx.send("SAVEPOINT work");
    record_effect(tx, message);
    tx.send("SAVEPOINT again");
    tx.send("DELETE FROM effect");
    tx.send("ROLLBACK TO SAVEPOINT again");
  });
  CHECK(fates(outcomes) == std::vector{Fate::applied, Fate::failed, Fate::waiting});
  CHECK(outcomes[1].reason.find("work") != std::string::npos);
  CHECK(db.effects() == 1);
  CHECK(db.number("SELECT count(*) FROM processed_msgs") == 1);
}

TEST_CASE(
    "settings and temporary tables of one message's handler do not reach the next, however they are made") {
  ServiceDatabase db;
  int n = 0;
  const auto batch = [&] {
    n += 3;
    return std::vector{letter(v7(n), "first"), letter(v7(n + 1)), letter(v7(n + 2))};
  };
  for (const char* sql : {"SET LOCAL synchronous_commit = off", "/* x */ SET LOCAL synchronous_commit TO off",
                          "SELECT set_config('synchronous_commit', 'off', true)",
                          "DO $$ BEGIN SET LOCAL synchronous_commit = off; END $$"}) {
    CAPTURE(sql);
    Inbox inbox(db.inbox());
    std::vector<std::string> seen;
    const auto letters = batch();
    const auto outcomes = inbox.process(records(letters), [&](Transaction& tx, const Message& message) {
      if (message.body() == "first")
        tx.send(sql);
      else
        seen.push_back(tx.exec("SHOW synchronous_commit").get<std::string>(0, 0));
      record_effect(tx, message);
    });
    CHECK(fates(outcomes) == std::vector(3, Fate::applied));
    CHECK(seen.size() >= 2);
    CHECK(std::ranges::count(seen, "on") == std::ssize(seen));
  }
  CHECK(db.effects() == 12);
  Inbox inbox(db.inbox());
  const auto letters = batch();
  const auto outcomes = inbox.process(records(letters), [](Transaction& tx, const Message& message) {
    try {
      tx.send("CREATE TEMP TABLE mine ON COMMIT DROP AS SELECT 1");  // twice in one transaction is an error
    } catch (const std::exception&) {
      return;  // whoever passes over being told is given its own transaction all the same
    }
    record_effect(tx, message);
  });
  CHECK(fates(outcomes) == std::vector(3, Fate::applied));
  CHECK(db.effects() == 15);
}

TEST_CASE(
    "what would end the transaction or outlive it is refused, also behind a comment, sent or executed") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  for (const char* sql :
       {"/* audit */ COMMIT", "-- audit\nROLLBACK", "; COMMIT", "SET search_path = pg_catalog", "LISTEN a",
        "SELECT pg_advisory_lock(1)", "PREPARE p AS SELECT 1", "RELEASE SAVEPOINT outbox_message"}) {
    CAPTURE(sql);
    for (const bool sent : {false, true}) {
      const auto one = letter(v7(1));
      const auto outcome = inbox.process(one.record(), [&](Transaction& tx, const Message& m) {
        record_effect(tx, m);
        sent ? tx.send(sql) : static_cast<void>(tx.exec(sql));
      });
      CHECK(outcome.fate == Fate::failed);
    }
  }
  CHECK(db.effects() == 0);
  CHECK(db.number("SELECT count(*) FROM processed_msgs") == 0);
}

TEST_CASE(
    "a COMMIT whose wait for the synchronous standby is cancelled is in doubt, and so is a duplicate of it") {
  const PostgresServer server;
  ServiceDatabase db({}, server.uri());
  Inbox first(db.inbox()), second(db.inbox());
  first.check();
  second.check();
  const auto set = [&](const std::string& how) {
    must(db.session.exec("ALTER SYSTEM " + how));
    must(db.session.exec("SELECT pg_reload_conf()"));
  };
  set("SET synchronous_standby_names = '*'");  // there is none: no commit is ever confirmed
  eventually("commits wait", [&] { return db.text("SHOW synchronous_standby_names") == "*"; });
  const Letter one = letter(v7(1));
  for (Inbox* inbox : {&first, &second}) {
    auto outcome =
        std::async(std::launch::async, [&] { return inbox->process(one.record(), record_effect); });
    await_standby_wait(db.session);
    inbox->cancel();
    const Outcome cancelled = outcome.get();
    CHECK(cancelled.fate == Fate::waiting);
    CHECK(db.effects() == 1);  // of the first: committed here, and perhaps nowhere else
  }
  must(db.session.exec("SET synchronous_commit = local"));
  set("RESET synchronous_standby_names");
  eventually("commits do not wait", [&] { return db.text("SHOW synchronous_standby_names").empty(); });
  CHECK(second.process(one.record(), record_effect).verdict == Verdict::duplicate);
  CHECK(db.effects() == 1);
}

TEST_CASE(
    "a key that is parked already is locked by whoever joins its queue: no retry lets it go meanwhile") {
  ServiceDatabase db;
  auto other = db.database.session();
  auto retry = db.database.session();
  const auto begin = [](pg::Session& session, int n) {
    must(session.exec("BEGIN"));
    return std::string(must(session.exec("SELECT inbox_begin('ledger', '" + v7(n) + "', sha256('{}'), 't', " +
                                         std::to_string(n) + ", 0, 'k')"))
                           .text(0, 0));
  };
  const auto park = [](pg::Session& session, int n) {
    must(session.exec("SELECT inbox_park('ledger', '" + v7(n) + "', sha256('{}'), 't', " + std::to_string(n) +
                      ", 0, 'k', '{}', '[]', 'failed')"));
  };
  CHECK(begin(other, 2) == "fresh");
  CHECK(begin(db.session, 1) == "fresh");
  park(db.session, 1);
  must(db.session.exec("COMMIT"));
  park(other, 2);
  // As inbox_dead_retry() does, which waits for `other`: the word of a person came just before.
  must(retry.exec("BEGIN"));
  must(retry.exec("SET LOCAL lock_timeout = '100ms'"));
  const auto waits = retry.exec("UPDATE inbox_parked_key SET retry_at = clock_timestamp()");
  REQUIRE_FALSE(waits.has_value());
  CHECK(waits.error().code == "55P03");
  must(retry.exec("ROLLBACK"));
  must(other.exec("COMMIT"));
  CHECK(db.number("SELECT count(*) FROM dead_msgs WHERE parked") == 2);
  must(db.session.exec("SELECT inbox_dead_retry(id) FROM dead_msgs ORDER BY id LIMIT 1"));
  Inbox inbox(db.inbox());
  CHECK(fates(inbox.retry_dead(record_effect)) == std::vector{Fate::applied, Fate::applied});
  CHECK(db.number("SELECT count(*) FROM inbox_parked_key") == 0);
}

TEST_CASE("a dead message is applied under the id that it is kept by, whatever reads its headers now") {
  ServiceDatabase db;
  Letter foreign{.offset = 1, .body = R"({"order":"4711"})"};
  auto options = db.inbox();
  options.id_of = [](const Record&) { return std::optional<std::string>("order-4711"); };
  CHECK(Inbox(options)
            .process(foreign.record(), [](Transaction&, const Message&) { throw Reject("no"); })
            .fate == Fate::dead);
  const std::string id = db.text("SELECT msg_id::text FROM dead_msgs");
  must(db.session.exec("SELECT inbox_dead_retry(id) FROM dead_msgs"));
  std::vector<std::string> seen;
  Inbox next_release(db.inbox());  // which can't read this id any more
  CHECK(fates(next_release.retry_dead([&](Transaction& tx, const Message& message) {
          seen.push_back(to_string(message.msg_id()));
          record_effect(tx, message);
        })) == std::vector{Fate::applied});
  CHECK(seen == std::vector{id});
  CHECK(db.text("SELECT state FROM processed_msgs") == "applied");
  CHECK(db.effects() == 1);
}

TEST_CASE(
    "a dead message whose retry fails for no fault of its own is put off and told, and stops no other") {
  ServiceDatabase db;
  int told = 0;
  auto options = db.inbox();
  options.on_outcome = [&](const Record&, const Outcome&) { ++told; };
  Inbox inbox(options);
  const auto batch = three();
  CHECK(fates(inbox.process(records(batch), [](Transaction&, const Message&) { throw Reject("later"); })) ==
        std::vector(3, Fate::dead));
  must(db.session.exec("SELECT inbox_dead_retry(id) FROM (SELECT id FROM dead_msgs ORDER BY id) d"));
  for (const char* failing :
       {"DO $$ BEGIN RAISE deadlock_detected; END $$", "SELECT no_such_column FROM effect"}) {
    CAPTURE(failing);
    must(db.session.exec("UPDATE dead_msgs SET retry_at = now() WHERE resolved_at IS NULL"));
    const std::int64_t before = db.effects();
    told = 0;
    const auto outcomes = inbox.retry_dead([&](Transaction& tx, const Message& message) {
      if (message.offset() == 1) static_cast<void>(tx.exec(failing));
      record_effect(tx, message);
    });
    CHECK(outcomes.front().fate == Fate::failed);
    CHECK(std::ssize(outcomes) == told);
    CHECK(db.effects() == (before == 0 ? 2 : before));
    CHECK(db.number("SELECT count(*) FROM dead_msgs WHERE retry_at > now() AND resolved_at IS NULL") == 1);
  }
  CHECK(db.number("SELECT waits FROM dead_msgs WHERE resolved_at IS NULL") == 2);
  CHECK(db.number("SELECT attempts FROM dead_msgs WHERE resolved_at IS NULL") == 1);
}

TEST_CASE(
    "an environment failure of one message is told at each try, and becomes its own when patience ends") {
  ServiceDatabase db;
  int blocked = 0;
  auto options = db.inbox();
  options.attempts_max = 2;
  options.on_outcome = [&](const Record&, const Outcome& outcome) { blocked += outcome.blocked ? 1 : 0; };
  const Handler bad_column = [](Transaction& tx, const Message&) {
    static_cast<void>(tx.exec("SELECT no_such_column FROM effect"));
  };
  Letter one = letter(v7(1));
  Inbox patient(options);
  for (int n = 1; n <= 4; ++n) CHECK(patient.process(one.record(), bad_column).fate == Fate::waiting);
  CHECK(blocked == 4);
  options.environment_patience = std::chrono::milliseconds{0};
  Inbox inbox(options);
  CHECK(inbox.process(one.record(), bad_column).fate == Fate::failed);
  one.attempt = 2;
  CHECK(inbox.process(one.record(), bad_column).fate == Fate::dead);
  CHECK(db.number("SELECT count(*) FROM dead_msgs") == 1);
}
