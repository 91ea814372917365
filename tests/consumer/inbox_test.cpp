#include "outbox/inbox.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>

#include "letters.hpp"
#include "service_database.hpp"

using namespace outbox;
using namespace outbox::test;

TEST_CASE("a fresh message is applied, its second copy is a duplicate and has no effect") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  const auto first = letter(v7(1), R"({"amount":1})");
  CHECK(inbox.process(first.record(), record_effect).fate == Fate::applied);
  const auto again = inbox.process(first.record(), record_effect);
  CHECK(again.fate == Fate::skipped);
  CHECK(again.verdict == Verdict::duplicate);
  CHECK(db.effects() == 1);
  CHECK(
      db.text("SELECT state || ' ' || topic || ' ' || partition || ' ' || \"offset\" FROM processed_msgs") ==
      "applied transfers 0 0");
}

TEST_CASE("identity is the id alone: another time, key, offset or topic is still a duplicate") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  auto copy = letter(v7(1));
  copy.headers.emplace_back("outbox-created-at", "2026-11-29T16:05:00.000000Z");
  CHECK(inbox.process(copy.record(), record_effect).fate == Fate::applied);
  copy.headers.back().second = "2026-11-29T17:00:00.000000Z";
  copy.offset = 99, copy.key = "other", copy.topic = "elsewhere", copy.partition = 5;
  CHECK(inbox.process(copy.record(), record_effect).verdict == Verdict::duplicate);
  CHECK(db.effects() == 1);
}

TEST_CASE("an id without a time in it is deduplicated as well") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  const auto random = letter("f81d4fae-7dec-41d0-a765-00a0c91e6bf6");
  const Letter foreign{.headers = {{"id", "order-4711"}}};
  for (const auto* one : {&random, &foreign}) {
    CHECK(inbox.process(one->record(), record_effect).fate == Fate::applied);
    CHECK(inbox.process(one->record(), record_effect).fate == Fate::skipped);
  }
  CHECK(db.effects() == 2);
}

TEST_CASE("consumers do not share what they remember") {
  ServiceDatabase db;
  Inbox ledger(db.inbox("ledger")), audit(db.inbox("audit"));
  const auto one = letter(v7(1));
  CHECK(ledger.process(one.record(), record_effect).fate == Fate::applied);
  CHECK(audit.process(one.record(), record_effect).fate == Fate::applied);
}

TEST_CASE("same id, other payload: a conflict is kept with both hashes, never processed, and kept once") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  CHECK(inbox.process(letter(v7(1), "a").record(), record_effect).fate == Fate::applied);
  for (int delivery = 0; delivery < 2; ++delivery) {
    const auto other = letter(v7(1), "b", 7);
    const auto outcome = inbox.process(other.record(), record_effect);
    CHECK(outcome.fate == Fate::dead);
    CHECK(outcome.verdict == Verdict::conflict);
  }
  CHECK(db.effects() == 1);
  CHECK(db.dead() == 1);
  CHECK(db.number(
            "SELECT count(*) FROM dead_msgs WHERE verdict = 'conflict' AND body = 'b' AND \"offset\" = 7"
            " AND error LIKE '%' || encode(sha256('a'), 'hex') || '%' || encode(sha256('b'), 'hex') || '%'"
            " AND payload_sha256 = sha256('b')") == 1);
}

TEST_CASE("a tombstone is a message: fresh, then a duplicate, and an empty body with its id is a conflict") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  const auto tombstone = letter(v7(1), std::nullopt);
  const auto outcome = inbox.process(tombstone.record(), [](Transaction& tx, const Message& m) {
    CHECK_FALSE(m.body().has_value());
    record_effect(tx, m);
  });
  CHECK(outcome.fate == Fate::applied);
  CHECK(inbox.process(tombstone.record(), record_effect).verdict == Verdict::duplicate);
  CHECK(inbox.process(letter(v7(1), "").record(), record_effect).verdict == Verdict::conflict);
}

TEST_CASE("a malformed message goes to dead_msgs as it came, once, and its neighbours are applied") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  std::vector<Letter> letters = {
      letter(v7(1), "{}", 0), {.offset = 1, .headers = {}}, letter(v7(2), "{}", 3)};
  letters.insert(letters.begin() + 2,
                 {.offset = 2,
                  .key = std::string("\0k\xff", 3),
                  .body = std::string("\0\x01\xfe", 3),
                  .headers = {{"outbox-id", std::string("\xff\xfe", 2)}, {"n", std::nullopt}}});
  const auto expected = std::vector{Fate::applied, Fate::dead, Fate::dead, Fate::applied};
  CHECK(fates(inbox.process(records(letters), record_effect)) == expected);
  CHECK(fates(inbox.process(records(letters), record_effect)) ==
        std::vector{Fate::skipped, Fate::dead, Fate::dead, Fate::skipped});
  CHECK(db.effects() == 2);
  CHECK(db.dead() == 2);
  CHECK(db.number("SELECT count(*) FROM dead_msgs WHERE verdict = 'malformed' AND msg_id IS NULL AND msg_key "
                  "= '\\x006bff'"
                  " AND body = '\\x0001fe' AND headers = '[[\"outbox-id\", {\"base64\": \"//4=\"}], [\"n\", "
                  "null]]'") == 1);
}

TEST_CASE(
    "200 headers, doubled names, a kilobyte of id and a malformed created_at: each is applied or kept, "
    "once") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  auto many = letter(v7(1), "{}", 0);
  for (int i = 0; i < 200; ++i) many.headers.emplace_back("h" + std::to_string(i % 50), std::to_string(i));
  many.headers.emplace_back("outbox-created-at", "yesterday");
  Letter longest{.offset = 1, .headers = {{"id", std::string(1024, 'x')}}};
  Letter too_long{.offset = 2, .headers = {{"id", std::string(1025, 'x')}}};
  Letter blank{.offset = 3, .headers = {{"outbox-id", ""}}};
  Letter no_text{.offset = 4, .headers = {{"id", "\xff\xfe"}}};
  std::size_t seen = 0;
  const std::vector batch = {many, longest, too_long, blank, no_text, letter(v7(2), "{}", 5)};
  const auto outcomes = inbox.process(records(batch), [&](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    if (m.offset() == 0) seen = m.headers().size();
  });
  CHECK(fates(outcomes) ==
        std::vector{Fate::applied, Fate::applied, Fate::dead, Fate::dead, Fate::dead, Fate::applied});
  CHECK(seen == 202);
  for (const auto& outcome : inbox.process(records(batch), record_effect)) CHECK(outcome.settled());
  CHECK(db.effects() == 3);
  CHECK(db.dead() == 3);
}

TEST_CASE("a batch is one transaction: handlers in order, one commit") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  std::vector<Letter> letters;
  for (int i = 0; i < 50; ++i) letters.push_back(letter(v7(50 - i), "{}", i));
  std::vector<std::int64_t> order;
  const auto outcomes = inbox.process(records(letters), [&](Transaction& tx, const Message& m) {
    order.push_back(m.offset());
    record_effect(tx, m);
  });
  CHECK(fates(outcomes) == std::vector(50, Fate::applied));
  CHECK(std::ranges::is_sorted(order));
  CHECK(order.size() == 50);
  CHECK(db.number("SELECT count(DISTINCT xmin::text) FROM effect") == 1);
}

TEST_CASE("two copies in one batch: one effect, and a differing third is a conflict") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  const std::vector letters = {letter(v7(1), "a", 0), letter(v7(1), "a", 1), letter(v7(1), "b", 2)};
  CHECK(fates(inbox.process(records(letters), record_effect)) ==
        std::vector{Fate::applied, Fate::skipped, Fate::dead});
  CHECK(db.effects() == 1);
  CHECK(db.number("SELECT \"offset\" FROM dead_msgs") == 2);
}

TEST_CASE(
    "a row that comes or goes between insert and look-up is never called fresh: the transaction is "
    "repeated") {
  ServiceDatabase db;
  must(
      db.session.exec_script("CREATE SEQUENCE tries;"
                             "CREATE FUNCTION skip_first() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN"
                             "  IF nextval(''tries'') = 1 THEN RETURN NULL; END IF; RETURN NEW; END';"
                             "CREATE TRIGGER skip_first BEFORE INSERT ON processed_msgs FOR EACH ROW EXECUTE "
                             "FUNCTION skip_first()"));
  Inbox inbox(db.inbox());
  std::atomic<int> calls = 0;
  const auto outcome = inbox.process(letter(v7(1)).record(), [&](Transaction& tx, const Message& m) {
    ++calls;
    record_effect(tx, m);
  });
  CHECK(outcome.fate == Fate::applied);
  CHECK(calls == 1);
  CHECK(db.number("SELECT last_value FROM tries") == 2);
  CHECK(db.number("SELECT count(*) FROM processed_msgs") == 1);
}

TEST_CASE("published messages are there if and only if the handler's transaction is committed") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  Uuid published;
  const auto chain = [&](Transaction& tx, const Message& m) {
    published = tx.publish("booked", "acc\"1", R"({"e":[],"n":12345678901234567890.10})",
                           {{"traceparent", "00-\"é"}});
    static_cast<void>(tx.publish("booked", std::nullopt, std::nullopt));
    if (m.attempt() == 1) throw std::runtime_error("after publishing");
  };
  auto one = letter(v7(1));
  CHECK(inbox.process(one.record(), chain).fate == Fate::failed);
  CHECK(db.number("SELECT count(*) FROM outbox_msg") == 0);
  one.attempt = 2;
  CHECK(inbox.process(one.record(), chain).fate == Fate::applied);
  CHECK(db.number("SELECT count(*) FROM outbox_msg") == 2);
  CHECK(db.text("SELECT msg_key || body::text || (headers->>'traceparent') FROM outbox_msg WHERE msg_id = '" +
                to_string(published) + "'") == R"(acc"1{"e":[],"n":12345678901234567890.10}00-"é)");
  CHECK(db.number("SELECT count(*) FROM outbox_msg WHERE body IS NULL AND msg_key IS NULL") == 1);
}

TEST_CASE("a bytea outbox takes any bytes, and a json one refuses what is no json as the message's fault") {
  relay::MigrateOptions bytes;
  bytes.body_type = relay::BodyType::bytea;
  ServiceDatabase db(bytes);
  Inbox inbox(db.inbox());
  const std::string body("\\x00\0\xff'", 7);
  CHECK(inbox
            .process(letter(v7(1)).record(),
                     [&](Transaction& tx, const Message&) { tx.publish("t", "k", body); })
            .fate == Fate::applied);
  CHECK(must(db.session.exec("SELECT body FROM outbox_msg", {}, pg::Format::binary)).text(0, 0) == body);

  ServiceDatabase json;
  Inbox strict(json.inbox());
  CHECK(strict
            .process(letter(v7(1)).record(),
                     [&](Transaction& tx, const Message&) { tx.publish("t", "k", "{"); })
            .fate == Fate::failed);
}

TEST_CASE("schema names with capitals, quotes and dots work") {
  relay::MigrateOptions odd;
  odd.table = {R"(My."Bank")", "outbox_msg"};
  ServiceDatabase db;
  must(db.session.exec(R"(CREATE SCHEMA "My.""Bank""")"));
  must(relay::migrate(db.session, odd));
  auto options = db.inbox();
  options.schema = R"(My."Bank")";
  Inbox inbox(options);
  inbox.check();
  CHECK(inbox
            .process(letter(v7(1)).record(),
                     [](Transaction& tx, const Message&) { tx.publish("t", "k", "{}"); })
            .fate == Fate::applied);
  CHECK(db.number(R"(SELECT count(*) FROM "My.""Bank""".outbox_msg)") == 1);
}

TEST_CASE("a process that froze in a transaction loses it after a minute, or as its role says") {
  ServiceDatabase db;
  std::string limit;
  const Handler handler = [&](Transaction& tx, const Message&) {
    limit = *tx.exec("SHOW idle_in_transaction_session_timeout").text(0, 0);
  };
  Inbox inbox(db.inbox());
  CHECK(inbox.process(letter(v7(1)).record(), handler).fate == Fate::applied);
  CHECK(limit == "1min");
  must(
      db.session.exec("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET idle_in_transaction_session_timeout"
                      " = %L', current_database(), '5s'); END $$"));
  Inbox later(db.inbox());
  CHECK(later.process(letter(v7(2)).record(), handler).fate == Fate::applied);
  CHECK(limit == "5s");
}
