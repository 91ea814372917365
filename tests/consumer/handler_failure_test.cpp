// What a failing handler leaves behind, alone and in a batch.

#include <doctest/doctest.h>
#include <libpq-fe.h>

#include <set>
#include <stdexcept>

#include "letters.hpp"
#include "outbox/inbox.hpp"
#include "service_database.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

/// Records the effect, then does `what` at the messages whose offset is in `at`.
Handler failing(std::set<std::int64_t> at, std::function<void(Transaction&)> what) {
  return [=](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    if (at.contains(m.offset())) what(tx);
  };
}

void run(Transaction& tx, const char* sql) {
  static_cast<void>(tx.exec(sql));
}

std::vector<Letter> ten_letters() {
  std::vector<Letter> letters;
  for (int i = 0; i < 10; ++i) letters.push_back(letter(v7(i), "{}", i));
  return letters;
}

}  // namespace

TEST_CASE("in a batch a failing message is failed alone: those before it are applied, those behind it wait") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  const auto letters = ten_letters();
  const auto outcomes =
      inbox.process(records(letters), failing({4}, [](Transaction&) { throw std::runtime_error("no"); }));
  const auto got = fates(outcomes);
  CHECK(std::vector(got.begin(), got.begin() + 4) == std::vector(4, Fate::applied));
  CHECK(got[4] == Fate::failed);
  CHECK(outcomes[4].reason == "no");
  CHECK(std::vector(got.begin() + 5, got.end()) == std::vector(5, Fate::waiting));
  CHECK(db.effects() == 4);
  CHECK(db.number("SELECT count(*) FROM processed_msgs") == 4);
}

TEST_CASE("a failing message holds up its own partition only") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  auto letters = ten_letters();
  for (std::size_t i = 0; i < letters.size(); ++i) letters[i].partition = static_cast<std::int32_t>(i % 2);
  const auto got =
      fates(inbox.process(records(letters), failing({2, 5}, [](Transaction&) { throw Retry("busy"); })));
  using enum Fate;
  CHECK(got ==
        std::vector{applied, applied, failed, applied, waiting, failed, waiting, waiting, waiting, waiting});
  CHECK(db.effects() == 3);
}

TEST_CASE("a rejected message is dead at once with its reason, and those behind it are applied") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  const auto letters = ten_letters();
  const auto outcomes =
      inbox.process(records(letters), failing({3, 9}, [](Transaction&) { throw Reject("no such account"); }));
  CHECK(outcomes[3].fate == Fate::dead);
  CHECK(outcomes[9].fate == Fate::dead);
  CHECK(db.effects() == 8);
  CHECK(db.number(
            "SELECT count(*) FROM dead_msgs WHERE verdict = 'rejected' AND error = 'no such account'") == 2);
  CHECK(db.number("SELECT count(*) FROM processed_msgs WHERE state = 'dead'") == 2);
  CHECK(inbox.process(letters[3].record(), record_effect).fate == Fate::skipped);
}

TEST_CASE("after attempts_max failures a message is dead, and Retry goes on forever") {
  ServiceDatabase db;
  auto options = db.inbox();
  options.attempts_max = 3;
  Inbox inbox(options);
  auto one = letter(v7(1));
  const auto broken = failing({0}, [](Transaction&) { throw std::runtime_error("bug"); });
  for (one.attempt = 1; one.attempt < 3; ++one.attempt)
    CHECK(inbox.process(one.record(), broken).fate == Fate::failed);
  CHECK(inbox.process(one.record(), broken).fate == Fate::dead);
  CHECK(db.number("SELECT attempts FROM dead_msgs WHERE verdict = 'failed' AND error = 'bug'") == 3);

  auto patient = letter(v7(2));
  patient.key = "another";
  patient.attempt = 1000;
  CHECK(inbox.process(patient.record(), failing({0}, [](Transaction&) { throw Retry("busy"); })).fate ==
        Fate::failed);
}

TEST_CASE("a handler that swallows its SQL error is not committed as success") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  const auto letters = ten_letters();
  const auto swallow = failing({4}, [](Transaction& tx) {
    try {
      run(tx, "SELECT 1/0");
    } catch (const std::exception&) {
    }
  });
  const auto outcomes = inbox.process(records(letters), swallow);
  CHECK(outcomes[3].fate == Fate::applied);
  CHECK(outcomes[4].fate == Fate::failed);
  CHECK(db.effects() == 4);

  ServiceDatabase other;
  Inbox native(other.inbox());
  const auto by_libpq = failing({0}, [](Transaction& tx) { PQclear(PQexec(tx.native(), "SELECT 1/0")); });
  CHECK(native.process(letters[0].record(), by_libpq).fate == Fate::failed);
  CHECK(other.effects() == 0);
}

TEST_CASE("an error undone by the handler's own savepoint is no failure") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  const auto careful = failing({0}, [](Transaction& tx) {
    run(tx, "SAVEPOINT careful");
    try {
      run(tx, "SELECT 1/0");
    } catch (const SqlError& e) {
      CHECK(e.sqlstate() == "22012");
      run(tx, "ROLLBACK TO SAVEPOINT careful");
    }
  });
  CHECK(inbox.process(letter(v7(1)).record(), careful).fate == Fate::applied);
  CHECK(db.effects() == 1);
}

TEST_CASE("a deferred constraint that fails at COMMIT fails its message, not its batch") {
  ServiceDatabase db;
  must(db.session.exec("CREATE TABLE owner (id int PRIMARY KEY)"));
  must(db.session.exec("CREATE TABLE owned (id int REFERENCES owner DEFERRABLE INITIALLY DEFERRED)"));
  Inbox inbox(db.inbox());
  const auto letters = ten_letters();
  const auto dangling = failing({6}, [](Transaction& tx) { run(tx, "INSERT INTO owned VALUES (1)"); });
  const auto got = fates(inbox.process(records(letters), dangling));
  CHECK(std::vector(got.begin(), got.begin() + 6) == std::vector(6, Fate::applied));
  CHECK(got[6] == Fate::failed);
  CHECK(got[7] == Fate::waiting);
  CHECK(db.effects() == 6);
}

TEST_CASE("a handler can't end the transaction") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  for (const auto* sql : {"COMMIT", "  commit;", "END", "ROLLBACK", "abort", "BEGIN", "START TRANSACTION",
                          "rollback work", "PREPARE TRANSACTION 'x'"}) {
    const auto ender = failing({0}, [sql](Transaction& tx) { run(tx, sql); });
    CHECK(inbox.process(letter(v7(1)).record(), ender).fate == Fate::failed);
  }
  CHECK(db.number("SELECT count(*) FROM processed_msgs") == 0);
  const auto behind = failing({0}, [](Transaction& tx) { PQclear(PQexec(tx.native(), "COMMIT")); });
  CHECK_THROWS_AS(static_cast<void>(inbox.process(letter(v7(1)).record(), behind)), std::logic_error);
}

TEST_CASE("no message is buried for what any message would meet: a missing table waits for a person") {
  ServiceDatabase db;
  auto options = db.inbox();
  options.attempts_max = 1;
  Inbox inbox(options);
  const auto missing = failing({0}, [](Transaction& tx) { run(tx, "INSERT INTO not_there VALUES (1)"); });
  CHECK(inbox.process(letter(v7(1)).record(), missing).fate == Fate::waiting);
  CHECK(db.dead() == 0);
  must(db.session.exec("CREATE TABLE not_there (id int)"));
  CHECK(inbox.process(letter(v7(1)).record(), missing).fate == Fate::applied);
}

TEST_CASE("a parameter with a NUL is refused, not cut") {
  CHECK_THROWS_AS(Param(std::string("a\0b", 3)), std::invalid_argument);
}

TEST_CASE(
    "a connection that a handler leaves busy or in pipeline mode is given up, and nothing of it is "
    "committed") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  const auto letters = ten_letters();
  const auto busy = failing({0}, [](Transaction& tx) { PQsendQuery(tx.native(), "SELECT pg_sleep(0.01)"); });
  const auto pipeline = failing({0}, [](Transaction& tx) { PQenterPipelineMode(tx.native()); });
  const auto copying =
      failing({0}, [](Transaction& tx) { PQclear(PQexec(tx.native(), "COPY effect FROM STDIN")); });
  for (const auto& careless : {busy, pipeline, copying}) {
    CHECK(inbox.process(letters[0].record(), careless).fate == Fate::failed);
    CHECK(db.effects() == 0);
    CHECK(db.number("SELECT count(*) FROM processed_msgs") == 0);
  }
  CHECK(inbox.process(letters[0].record(), record_effect).fate == Fate::applied);
  CHECK(db.effects() == 1);
}

TEST_CASE(
    "a message whose row is locked by another waits with its partition only, and no attempt is counted") {
  ServiceDatabase db;
  must(db.session.exec("CREATE TABLE account (id int)"));
  must(db.session.exec("INSERT INTO account VALUES (1)"));
  auto other = db.database.session();
  must(other.exec("BEGIN"));
  must(other.exec("SELECT FROM account FOR UPDATE"));
  Inbox inbox(db.inbox());
  auto letters = ten_letters();
  for (std::size_t i = 0; i < letters.size(); ++i) letters[i].partition = static_cast<std::int32_t>(i % 2);
  const auto locked = failing({2}, [](Transaction& tx) {
    run(tx, "SET LOCAL lock_timeout = '10ms'");
    run(tx, "UPDATE account SET id = 1");
  });
  using enum Fate;
  CHECK(fates(inbox.process(records(letters), locked)) == std::vector{applied, applied, waiting, applied,
                                                                      waiting, applied, waiting, applied,
                                                                      waiting, applied});
  must(other.exec("ROLLBACK"));
  CHECK(fates(inbox.process(records(letters), locked)) == std::vector{skipped, skipped, applied, skipped,
                                                                      applied, skipped, applied, skipped,
                                                                      applied, skipped});
  CHECK(db.effects() == 10);
}
