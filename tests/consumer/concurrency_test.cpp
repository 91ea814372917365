// Several transactions on the same ids at once, and a database that goes away.

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "letters.hpp"
#include "outbox/inbox.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

/// Offers the letters again, as a Kafka loop would, until every one is settled.
std::vector<Outcome> settle_all(Inbox& inbox, std::vector<Letter> letters, const Handler& handler) {
  std::vector<Outcome> outcomes;
  eventually("every letter settled", [&] {
    outcomes = inbox.process(records(letters), handler);
    for (std::size_t i = 0; i < outcomes.size(); ++i)
      if (outcomes[i].fate == Fate::failed) ++letters[i].attempt;
    return std::ranges::all_of(outcomes, &Outcome::settled);
  });
  return outcomes;
}

bool somebody_waits(ServiceDatabase& db) {
  return db.number(
             "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
             " AND application_name LIKE 'outbox:%' AND wait_event_type = 'Lock'") > 0;
}

}  // namespace

TEST_CASE("twenty threads with one id: one effect, nineteen duplicates") {
  ServiceDatabase db;
  std::atomic<int> applied = 0, skipped = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i)
    threads.emplace_back([&] {
      Inbox inbox(db.inbox());
      const auto outcomes = settle_all(inbox, {letter(v7(1))}, record_effect);
      ++(outcomes[0].fate == Fate::applied ? applied : skipped);
    });
  for (auto& thread : threads) thread.join();
  CHECK(applied == 1);
  CHECK(skipped == 19);
  CHECK(db.effects() == 1);
}

TEST_CASE(
    "a copy waits for the one that is being applied: a commit makes it a duplicate, a rollback makes it "
    "fresh") {
  for (const bool first_fails : {false, true}) {
    ServiceDatabase db;
    std::atomic<bool> inside = false, go = false;
    std::thread first([&] {
      Inbox inbox(db.inbox());
      static_cast<void>(inbox.process(letter(v7(1)).record(), [&](Transaction& tx, const Message& m) {
        record_effect(tx, m);
        inside = true;
        eventually("the second copy waits", [&] { return go.load(); });
        if (first_fails) throw std::runtime_error("no");
      }));
    });
    eventually("the first is inside", [&] { return inside.load(); });
    Outcome second;
    std::thread other([&] {
      Inbox inbox(db.inbox());
      second = inbox.process(letter(v7(1)).record(), record_effect);
    });
    eventually("the second waits for the index", [&] { return somebody_waits(db); });
    go = true;
    first.join();
    other.join();
    CHECK(second.fate == (first_fails ? Fate::applied : Fate::skipped));
    CHECK(db.effects() == 1);
  }
}

TEST_CASE("a hundred ids in crossed order in two batches at once: no deadlock, one effect each") {
  ServiceDatabase db;
  // Slow inserts, so that the two overlap for certain.
  must(db.session.exec_script(
      "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.003); RETURN "
      "NEW; END';"
      "CREATE TRIGGER slow BEFORE INSERT ON processed_msgs FOR EACH ROW EXECUTE FUNCTION slow()"));
  std::vector<Letter> up, down;
  for (int i = 0; i < 100; ++i) {
    up.push_back(letter(v7(i), "{}", i));
    down.push_back(letter(v7(99 - i), "{}", i));
  }
  std::thread other([&] {
    Inbox inbox(db.inbox());
    settle_all(inbox, up, record_effect);
  });
  Inbox inbox(db.inbox());
  settle_all(inbox, down, record_effect);
  other.join();
  CHECK(db.effects() == 100);
  const auto deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
  must(db.session.exec("SELECT pg_stat_force_next_flush()"));
  CHECK(db.number(deadlocks) == 0);
}

TEST_CASE("handlers that deadlock with each other are repeated, and every message takes effect once") {
  ServiceDatabase db;
  must(db.session.exec("CREATE TABLE account (id int PRIMARY KEY, balance int)"));
  must(db.session.exec("INSERT INTO account VALUES (1, 0), (2, 0)"));
  std::atomic<int> arrived = 0;
  const auto crossing = [&](int a, int b) {
    return [&, a, b](Transaction& tx, const Message& m) {
      record_effect(tx, m);
      static_cast<void>(tx.exec("UPDATE account SET balance = balance + 1 WHERE id = $1", a));
      ++arrived;
      static_cast<void>(happens_within(Millis{2000}, [&] { return arrived >= 2; }));
      static_cast<void>(tx.exec("UPDATE account SET balance = balance + 1 WHERE id = $1", b));
    };
  };
  std::thread other([&] {
    Inbox inbox(db.inbox());
    settle_all(inbox, {letter(v7(1))}, crossing(1, 2));
  });
  Inbox inbox(db.inbox());
  settle_all(inbox, {letter(v7(2))}, crossing(2, 1));
  other.join();
  CHECK(arrived >= 3);
  CHECK(db.effects() == 2);
  CHECK(db.number("SELECT sum(balance) FROM account WHERE balance = 2") == 4);
}

TEST_CASE("a session that is killed in the handler is made again and the transaction repeated") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  int calls = 0;
  const auto outcome = inbox.process(letter(v7(1)).record(), [&](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    if (++calls == 1) static_cast<void>(tx.exec("SELECT pg_terminate_backend(pg_backend_pid())"));
  });
  CHECK(outcome.fate == Fate::applied);
  CHECK(calls == 2);
  CHECK(db.effects() == 1);
}

TEST_CASE("a database that is away makes records wait, and nothing is lost or doubled when it is back") {
  PostgresServer server;
  ServiceDatabase db({}, server.uri());
  Inbox inbox(db.inbox());
  const std::vector letters = {letter(v7(1), "{}", 0), letter(v7(2), "{}", 1)};
  CHECK(inbox.process(letters[0].record(), record_effect).fate == Fate::applied);
  server.kill();
  const auto away = inbox.process(records(letters), record_effect);
  CHECK(fates(away) == std::vector(2, Fate::waiting));
  CHECK_FALSE(away[0].reason.empty());
  server.start();
  CHECK(fates(settle_all(inbox, letters, record_effect)) == std::vector{Fate::skipped, Fate::applied});
  auto fresh = db.database.session();
  CHECK(must(fresh.exec("SELECT count(*) FROM effect")).integer(0, 0) == 2);
}

TEST_CASE("a handler's commit is durable even where the role's default is not") {
  ServiceDatabase db;
  must(db.session.exec("ALTER DATABASE \"" + db.database.name() + "\" SET synchronous_commit = off"));
  must(db.session.exec("ALTER DATABASE \"" + db.database.name() +
                       "\" SET default_transaction_isolation = serializable"));
  Inbox inbox(db.inbox());
  std::string durable, isolation;
  static_cast<void>(inbox.process(letter(v7(1)).record(), [&](Transaction& tx, const Message&) {
    durable = tx.exec("SHOW synchronous_commit").get<std::string>(0, 0);
    isolation = tx.exec("SHOW transaction_isolation").get<std::string>(0, 0);
  }));
  CHECK(durable == "on");
  CHECK(isolation == "read committed");
}

TEST_CASE("check names what is missing") {
  TestDatabase empty;
  Inbox inbox({.name = "ledger", .postgres = empty.uri()});
  std::string text;
  try {
    inbox.check();
  } catch (const SqlError& e) {
    text = e.what();
  }
  CHECK(text.find("outboxd migrate") != std::string::npos);
  CHECK_THROWS_AS(Inbox({.name = ""}), std::invalid_argument);
  CHECK_THROWS_AS(Inbox({.name = "ledger", .attempts_max = 0}), std::invalid_argument);
}
