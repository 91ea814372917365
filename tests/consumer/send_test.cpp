// Statements that a handler sends without waiting for their answers: the same promises, and whose fault it
// is.

#include <doctest/doctest.h>
#include <libpq-fe.h>

#include <stdexcept>

#include "letters.hpp"
#include "outbox/inbox.hpp"
#include "service_database.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

/// Effects whose offset must be new.
struct SendDatabase : ServiceDatabase {
  SendDatabase() { must(session.exec("ALTER TABLE effect ADD UNIQUE (off)")); }
};

void send_effect(Transaction& tx, std::int64_t offset) {
  tx.send("INSERT INTO effect (off) VALUES ($1)", offset);
}

/// The message at `at` sends an effect that is there already; each sends one of its own.
Handler repeating(std::int64_t at) {
  return [at](Transaction& tx, const Message& m) {
    send_effect(tx, m.offset());
    if (m.offset() == at) send_effect(tx, 0);
  };
}

std::vector<Letter> letters_to(int count) {
  std::vector<Letter> letters;
  letters.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) letters.push_back(letter(v7(i), "{}", i));
  return letters;
}

}  // namespace

TEST_CASE("what is sent is executed in its place, between what is executed before and behind it") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  std::int64_t seen = 0;
  const Handler handler = [&](Transaction& tx, const Message& m) {
    tx.exec("INSERT INTO effect (off) VALUES ($1)", 100 + m.offset());
    tx.send("UPDATE effect SET off = off + $1 WHERE off >= 100", 1);
    send_effect(tx, m.offset());
    seen = tx.exec("SELECT sum(off)::bigint FROM effect").get<std::int64_t>(0, 0);
    tx.send("UPDATE effect SET msg = $1 WHERE off = $2", m.msg_id(), m.offset());
  };
  CHECK(inbox.process(letter(v7(1), "{}", 7).record(), handler).fate == Fate::applied);
  CHECK(seen == 115);
  CHECK(db.text("SELECT msg FROM effect WHERE off = 7") == v7(1));
  CHECK(db.effects() == 2);
}

TEST_CASE("a sent statement that fails is its own message's failure, though later handlers ran meanwhile") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  auto letters = letters_to(10);
  letters[8].partition = 1;
  int calls = 0;
  const Handler handler = [&](Transaction& tx, const Message& m) {
    ++calls;
    repeating(4)(tx, m);
  };
  const auto outcomes = inbox.process(records(letters), handler);
  CHECK(calls == 10 + 4 + 1 + 1);  // it is known at once which one it was
  using enum Fate;
  CHECK(fates(outcomes) ==
        std::vector{applied, applied, applied, applied, failed, waiting, waiting, waiting, applied, waiting});
  CHECK(outcomes[4].reason.find("23505") != std::string::npos);
  CHECK(db.effects() == 5);
  CHECK(db.number("SELECT count(*) FROM processed_msgs") == 5);
}

TEST_CASE(
    "a later handler that meets an earlier one's failure is not blamed for it, whatever it makes of it") {
  SendDatabase db;
  int refused = 0;
  const auto meets = [&](const std::function<void(Transaction&)>& use) {
    refused = 0;
    return [&, use](Transaction& tx, const Message& m) {
      repeating(1)(tx, m);
      if (m.offset() != 2) return;
      try {
        use(tx);
      } catch (const SqlError& e) {
        if (e.sqlstate() == "23505") ++refused;
        throw Reject("not my fault");
      }
    };
  };
  struct Use {
    std::function<void(Transaction&)> use;
    int refused = 1;
  };
  const Use uses[] = {
      {[](Transaction& tx) { tx.exec("SELECT 1"); }},
      {[](Transaction& tx) { static_cast<void>(tx.advance("order", 1)); }},
      {[](Transaction& tx) { tx.publish("t", "k", "{}"); }},
      {[](Transaction& tx) { static_cast<void>(tx.native()); }, 0},  // in a transaction of its own
      {[](Transaction& tx) {
        for (int i = 0; i < 5000; ++i) tx.send("SELECT 1");
      }}};
  for (const auto& [use, met] : uses) {
    Inbox inbox(db.inbox());
    must(db.session.exec("TRUNCATE effect, processed_msgs, inbox_version"));
    auto letters = letters_to(3);
    letters[2].partition = 1;
    const auto outcomes = inbox.process(records(letters), meets(use));
    CHECK(fates(outcomes) == std::vector{Fate::applied, Fate::failed, Fate::applied});
    CHECK(refused == met);
    CHECK(db.effects() == 2);
  }
  CHECK(db.dead() == 0);
}

TEST_CASE(
    "a statement that fails behind what was sent is the handler's own to catch, and a savepoint undoes it") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  const Handler handler = [](Transaction& tx, const Message& m) {
    send_effect(tx, m.offset());
    tx.send("SAVEPOINT here");
    CHECK_THROWS_AS(tx.exec("INSERT INTO effect (off) VALUES ($1)", m.offset()), SqlError);
    tx.exec("ROLLBACK TO here");
    send_effect(tx, 10 + m.offset());
  };
  const auto letters = letters_to(3);
  CHECK(fates(inbox.process(records(letters), handler)) == std::vector(3, Fate::applied));
  CHECK(db.effects() == 6);
}

TEST_CASE("a sent statement must affect as many rows as it says: else its message fails, or is rejected") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  must(db.session.exec("INSERT INTO effect (off) VALUES (1), (2)"));
  const Handler handler = [](Transaction& tx, const Message& m) {
    tx.send(Affects{1}, "UPDATE effect SET seq = DEFAULT WHERE off = $1", m.offset() == 5 ? 99 : 1);
    tx.send(Affects{2}, "UPDATE effect SET seq = DEFAULT WHERE off <= 2");
    tx.send(Affects{.rows = 1, .else_reject = "no such account"}, "DELETE FROM effect WHERE off = $1",
            m.offset() == 3 ? 98 : 10 + m.offset());
    tx.send("INSERT INTO effect (off) VALUES ($1)", 20 + m.offset());
  };
  must(db.session.exec("INSERT INTO effect (off) SELECT 10 + n FROM generate_series(0, 6) n"));
  const auto letters = letters_to(7);
  const auto outcomes = inbox.process(records(letters), handler);
  using enum Fate;
  CHECK(fates(outcomes) == std::vector{applied, applied, applied, dead, applied, failed, waiting});
  CHECK(outcomes[3].reason == "no such account");
  CHECK(outcomes[5].reason == "a statement affected 0 rows, where 1 were expected");
  CHECK(db.number("SELECT count(*) FROM effect WHERE off >= 20") == 4);
  CHECK(db.number("SELECT count(*) FROM effect WHERE off BETWEEN 10 AND 19") == 3);
}

TEST_CASE("what a handler throws after its own sent statement failed counts, but for a transient failure") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  must(db.session.exec("INSERT INTO effect (off) VALUES (0)"));
  const auto throwing = [](const char* sql) {
    return [sql](Transaction& tx, const Message&) {
      tx.send(sql);
      throw Reject("as I say");
    };
  };
  CHECK(inbox.process(letter(v7(1)).record(), throwing("INSERT INTO effect (off) VALUES (0)")).fate ==
        Fate::dead);
  const auto outcome =
      inbox.process(letter(v7(2)).record(),
                    throwing("DO $$ BEGIN RAISE SQLSTATE '40P01' USING MESSAGE = 'deadlock'; END $$"));
  CHECK(outcome.fate == Fate::waiting);
  CHECK(outcome.reason.find("40P01") != std::string::npos);
  CHECK(db.effects() == 1);
}

TEST_CASE("nothing of a message that throws is written, and what was to follow its commit is not called") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  int followed = 0;
  const Handler fails = [&](Transaction& tx, const Message& m) {
    tx.after_commit([&] { ++followed; });
    repeating(0)(tx, m);
  };
  CHECK(inbox.process(letter(v7(1)).record(), fails).fate == Fate::failed);
  const Handler throws = [&](Transaction& tx, const Message& m) {
    send_effect(tx, m.offset());
    throw std::runtime_error("no");
  };
  const auto backend = [&] {
    return db.text(
        "SELECT string_agg(pid::text, ',') FROM pg_stat_activity WHERE application_name = 'outbox:ledger'");
  };
  const auto before = backend();
  CHECK(inbox.process(letter(v7(1)).record(), throws).fate == Fate::failed);
  CHECK(db.effects() == 0);
  CHECK(followed == 0);
  CHECK(backend() == before);  // rolled back, and not by a lost connection
  CHECK(inbox.process(letter(v7(1)).record(), repeating(9)).fate == Fate::applied);
}

TEST_CASE("a handler may send without end and without reading: large statements, large answers") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  const std::string large(20'000, 'x');
  const Handler handler = [&](Transaction& tx, const Message& m) {
    for (int i = 0; i < 2500; ++i) tx.send("SELECT repeat($1, 1) || $2::text", large, i);
    send_effect(tx, m.offset());
  };
  CHECK(inbox.process(letter(v7(1)).record(), handler).fate == Fate::applied);
  CHECK(db.effects() == 1);
}

TEST_CASE("more texts are sent than plans are kept") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  const Handler handler = [](Transaction& tx, const Message& m) {
    for (int i = 0; i < 600; ++i)
      tx.send("INSERT INTO effect (off) VALUES ($1 + " + std::to_string(i) + ")", 1000 * m.offset());
  };
  const auto letters = letters_to(2);
  CHECK(fates(inbox.process(records(letters), handler)) == std::vector(2, Fate::applied));
  CHECK(db.effects() == 1200);
}

TEST_CASE("a plan whose table has changed is made again, and nobody is blamed") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  const Handler handler = [](Transaction& tx, const Message& m) {
    tx.send("INSERT INTO effect (off) VALUES ($1)", m.offset());
    tx.send("SELECT * FROM effect WHERE off = $1", m.offset());
  };
  CHECK(inbox.process(letter(v7(1), "{}", 1).record(), handler).fate == Fate::applied);
  must(db.session.exec("ALTER TABLE effect ADD COLUMN more int"));
  CHECK(inbox.process(letter(v7(2), "{}", 2).record(), handler).fate == Fate::applied);
  CHECK(db.effects() == 2);
}

TEST_CASE("a connection that breaks under what was sent costs nothing but a repetition") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  int calls = 0;
  const Handler handler = [&](Transaction& tx, const Message& m) {
    send_effect(tx, m.offset());
    if (++calls == 2) tx.send("SELECT pg_terminate_backend(pg_backend_pid())");
    for (int i = 0; i < 100; ++i) tx.send("SELECT 1");
  };
  const auto letters = letters_to(4);
  CHECK(fates(inbox.process(records(letters), handler)) == std::vector(4, Fate::applied));
  CHECK(db.effects() == 4);
  CHECK(calls > 4);
}

TEST_CASE("the native handle is idle in the transaction once it is asked for behind what was sent") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  const Handler handler = [](Transaction& tx, const Message& m) {
    send_effect(tx, m.offset());
    auto* connection = tx.native();
    if (PQpipelineStatus(connection) != PQ_PIPELINE_OFF || PQtransactionStatus(connection) != PQTRANS_INTRANS)
      throw std::runtime_error("not idle");
    PQclear(PQexec(connection, "UPDATE effect SET off = 5"));
    send_effect(tx, 6);
  };
  CHECK(inbox.process(letter(v7(1), "{}", 4).record(), handler).fate == Fate::applied);
  CHECK(db.text("SELECT string_agg(off::text, ',' ORDER BY off) FROM effect") == "5,6");
}

TEST_CASE(
    "a handler that leaves the native handle busy and then sends fails, and nothing of it is committed") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  const Handler handler = [](Transaction& tx, const Message& m) {
    tx.exec("INSERT INTO effect (off) VALUES (100)");
    PQsendQuery(tx.native(), "SELECT 1");
    send_effect(tx, m.offset());
    if (m.offset() == 1) tx.exec("SELECT 1");
  };
  for (int i = 0; i < 2; ++i) {
    const auto outcome = inbox.process(letter(v7(i), "{}", i).record(), handler);
    CHECK(outcome.fate == Fate::failed);
    CHECK(outcome.reason.find("left busy") != std::string::npos);
  }
  CHECK(db.effects() == 0);
  CHECK(inbox.process(letter(v7(1), "{}", 1).record(), repeating(9)).fate == Fate::applied);
}

TEST_CASE("what ends the transaction can't be sent") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  for (const auto* sql : {"COMMIT", "rollback", "BEGIN"}) {
    const auto outcome =
        inbox.process(letter(v7(1)).record(), [&](Transaction& tx, const Message&) { tx.send(sql); });
    CHECK(outcome.fate == Fate::failed);
    CHECK(outcome.reason.find("must not begin or end") != std::string::npos);
  }
}

TEST_CASE("copies, conflicts and rejected ones among messages that send: each has its own verdict") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  auto letters = letters_to(6);
  letters[2].headers = letters[1].headers;  // a copy
  letters[3].headers = letters[1].headers,
  letters[3].body = "{\"x\": 1}";  // a conflict: buried amid the batch
  const auto outcomes = inbox.process(records(letters), repeating(5));
  using enum Fate;
  CHECK(fates(outcomes) == std::vector{applied, applied, skipped, dead, applied, failed});
  CHECK(db.effects() == 3);
  CHECK(db.dead() == 1);
}

TEST_CASE("a span handler that sends is redone by halves, down to the message that fails") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  const SpanHandler handler = [](Transaction& tx, std::span<const Message> messages) {
    for (const auto& m : messages) repeating(3)(tx, m);
  };
  const auto letters = letters_to(6);
  const auto outcomes = inbox.process(records(letters), handler);
  using enum Fate;
  CHECK(fates(outcomes) == std::vector{applied, applied, applied, failed, waiting, waiting});
  CHECK(db.effects() == 3);
}

TEST_CASE("a dead message whose handler sends is applied, or stays dead with the reason") {
  SendDatabase db;
  Inbox inbox(db.inbox());
  CHECK(
      inbox.process(letter(v7(1), "{}", 4).record(), [](Transaction&, const Message&) { throw Reject("no"); })
          .fate == Fate::dead);
  const auto want = [&] { must(db.session.exec("SELECT inbox_dead_retry(id) FROM dead_msgs")); };
  want();
  must(db.session.exec("INSERT INTO effect (off) VALUES (0)"));
  CHECK(fates(inbox.retry_dead(repeating(4))) == std::vector{Fate::dead});
  CHECK(db.text("SELECT error FROM dead_msgs").find("23505") != std::string::npos);
  CHECK(db.effects() == 1);
  want();
  CHECK(fates(inbox.retry_dead(repeating(5))) == std::vector{Fate::applied});
  CHECK(db.effects() == 2);
}
