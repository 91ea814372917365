// What becomes of a message whose handler goes on failing, of those behind it, and of the word of a person.

#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

#include "letters.hpp"
#include "outbox/inbox.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

/// Messages of one partition; `n` is id, offset and body.
Letter keyed(int n, std::optional<std::string> key = "k") {
  auto one = letter(v7(n), std::to_string(n), n);
  one.key = std::move(key);
  return one;
}

/// The last attempt of a message.
Letter last_attempt(Letter letter) {
  letter.attempt = 1000;
  return letter;
}

const Handler broken = [](Transaction&, const Message&) { throw std::runtime_error("no account"); };

struct DeadLetterDatabase : ServiceDatabase {
  std::int64_t id_of(int n) {
    return number("SELECT id FROM dead_msgs WHERE msg_id = '" + v7(n) + "' ORDER BY id DESC LIMIT 1");
  }
  bool call(const std::string& sql) { return must(session.exec(sql)).boolean(0, 0); }
  bool retry(int n) { return call("SELECT inbox_dead_retry(" + std::to_string(id_of(n)) + ")"); }
  bool discard(int n) {
    return call("SELECT inbox_dead_discard(" + std::to_string(id_of(n)) + ", 'agreed with the bank')");
  }
  std::int64_t parked_keys() { return number("SELECT count(*) FROM inbox_parked_key"); }
  /// The bodies in the order in which they took effect, of one key.
  std::string order() {
    return text("SELECT coalesce(string_agg(off::text, ',' ORDER BY seq), '') FROM effect");
  }
  std::string state_of(int n) {
    return text("SELECT state FROM processed_msgs WHERE msg_id = '" + v7(n) + "'");
  }
};

Fate fate_of(Inbox& inbox, const Letter& letter, const Handler& handler = record_effect) {
  return inbox.process(letter.record(), handler).fate;
}

}  // namespace

TEST_CASE("park_key: the key's later messages follow the failed one in order, other keys go on") {
  DeadLetterDatabase db;
  Inbox inbox(db.inbox());
  CHECK(fate_of(inbox, last_attempt(keyed(1)), broken) == Fate::dead);
  const std::vector batch = {keyed(2), keyed(3, "other"), keyed(4), keyed(5, std::nullopt)};
  using enum Fate;
  CHECK(fates(inbox.process(records(batch), record_effect)) == std::vector{parked, applied, parked, applied});
  CHECK(db.order() == "3,5");
  CHECK(db.text("SELECT string_agg(verdict || \"offset\", ',' ORDER BY id) FROM dead_msgs WHERE parked") ==
        "failed1,parked2,parked4");
  CHECK(db.state_of(1) == "parked");
  CHECK(db.state_of(4) == "parked");
  CHECK(inbox.process(keyed(2).record(), record_effect).verdict == Verdict::duplicate);
  auto other_payload = keyed(2);
  other_payload.body = "other";
  CHECK(inbox.process(other_payload.record(), record_effect).verdict == Verdict::conflict);
}

TEST_CASE("park_key: a message without a key, and one that was rejected, are dead alone") {
  DeadLetterDatabase db;
  Inbox inbox(db.inbox());
  CHECK(fate_of(inbox, last_attempt(keyed(1, std::nullopt)), broken) == Fate::dead);
  CHECK(fate_of(inbox, keyed(2), [](Transaction&, const Message&) { throw Reject("never"); }) == Fate::dead);
  CHECK(db.parked_keys() == 0);
  CHECK(fate_of(inbox, keyed(3)) == Fate::applied);
}

TEST_CASE("the same key in another topic, or of another consumer, is not parked") {
  DeadLetterDatabase db;
  Inbox ledger(db.inbox("ledger")), audit(db.inbox("audit"));
  CHECK(fate_of(ledger, last_attempt(keyed(1)), broken) == Fate::dead);
  auto elsewhere = keyed(2);
  elsewhere.topic = "elsewhere";
  CHECK(fate_of(ledger, elsewhere) == Fate::applied);
  CHECK(fate_of(audit, keyed(1)) == Fate::applied);
}

TEST_CASE("dead_letter: the failed one is dead alone, and later messages of its key pass") {
  DeadLetterDatabase db;
  auto options = db.inbox();
  options.after_attempts = AfterAttempts::dead_letter;
  Inbox inbox(options);
  CHECK(fate_of(inbox, last_attempt(keyed(1)), broken) == Fate::dead);
  CHECK(fate_of(inbox, keyed(2)) == Fate::applied);
  CHECK(db.parked_keys() == 0);
  CHECK(db.retry(1));
  CHECK(fates(inbox.retry_dead(record_effect)) == std::vector{Fate::applied});
  CHECK(db.order() == "2,1");
}

TEST_CASE("block: the failed one is tried on, its partition waits behind it, and that is told") {
  DeadLetterDatabase db;
  auto options = db.inbox();
  options.after_attempts = AfterAttempts::block;
  int told = 0;
  options.on_outcome = [&](const Record&, const Outcome& outcome) { told += outcome.blocked ? 1 : 0; };
  Inbox inbox(options);
  CHECK(fate_of(inbox, keyed(1), broken) == Fate::failed);
  CHECK(told == 0);
  const std::vector batch = {last_attempt(keyed(1)), keyed(2)};
  const auto outcomes = inbox.process(records(batch), [](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    if (m.offset() == 1) throw std::runtime_error("no account");
  });
  CHECK(fates(outcomes) == std::vector{Fate::failed, Fate::waiting});
  CHECK(outcomes[0].blocked);
  CHECK(told == 1);
  CHECK(db.dead() == 0);
  CHECK(fate_of(inbox, last_attempt(keyed(1))) == Fate::applied);
}

TEST_CASE("a retry applies the key's queue in its order, and then lets the key go") {
  DeadLetterDatabase db;
  Inbox inbox(db.inbox());
  CHECK(fate_of(inbox, last_attempt(keyed(1)), broken) == Fate::dead);
  for (int n = 2; n <= 5; ++n) CHECK(fate_of(inbox, keyed(n)) == Fate::parked);
  CHECK(inbox.retry_dead(record_effect).empty());
  CHECK(db.retry(3));  // any of the queue: it is the key's word
  CHECK(fates(inbox.retry_dead(record_effect)) == std::vector(5, Fate::applied));
  CHECK(db.order() == "1,2,3,4,5");
  CHECK(db.parked_keys() == 0);
  CHECK(db.number("SELECT count(*) FROM dead_msgs WHERE resolution = 'applied'") == 5);
  CHECK(db.state_of(1) == "applied");
  CHECK(fate_of(inbox, keyed(6)) == Fate::applied);
  CHECK(inbox.process(keyed(1).record(), record_effect).verdict == Verdict::duplicate);
  CHECK_FALSE(db.retry(1));
}

TEST_CASE("a retry that fails stops its queue where it failed, and other wanted messages go on") {
  DeadLetterDatabase db;
  Inbox inbox(db.inbox());
  for (const auto* key : {"a", "b"}) {
    const int first = *key == 'a' ? 1 : 11;
    CHECK(fate_of(inbox, last_attempt(keyed(first, key)), broken) == Fate::dead);
    CHECK(fate_of(inbox, keyed(first + 1, key)) == Fate::parked);
    CHECK(db.retry(first));
  }
  const auto outcomes = inbox.retry_dead([](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    if (m.offset() == 2) throw std::runtime_error("still no account");
  });
  CHECK(db.order() == "1,11,12");
  CHECK(db.parked_keys() == 1);
  CHECK(inbox.retry_dead(record_effect).empty());
  CHECK(db.text("SELECT verdict || attempts || error FROM dead_msgs WHERE msg_id = '" + v7(2) + "'") ==
        "failed2still no account");
  CHECK(db.retry(2));
  CHECK(fates(inbox.retry_dead(record_effect)) == std::vector{Fate::applied});
  CHECK(db.order() == "1,11,12,2");
}

TEST_CASE("a retried message is the record it was: bytes, nulls, doubled headers, and one attempt more") {
  DeadLetterDatabase db;
  Inbox inbox(db.inbox());
  auto odd = keyed(1);
  odd.partition = 7;
  odd.key = std::string("\0k\xff", 3);
  odd.body = std::string("\0\x01\xfe", 3);
  odd.headers.insert(odd.headers.end(),
                     {{"h", "é"}, {"h", std::nullopt}, {"\xfe", std::string("\xff\x00", 2)}});
  CHECK(fate_of(inbox, last_attempt(odd), broken) == Fate::dead);
  CHECK(db.retry(1));
  bool same = false;
  CHECK(fates(inbox.retry_dead([&](Transaction& tx, const Message& m) {
          record_effect(tx, m);
          Letter seen{.topic = std::string(m.topic()), .partition = m.partition(), .offset = m.offset()};
          seen.key = m.key() ? std::optional<std::string>(*m.key()) : std::nullopt;
          seen.body = m.body() ? std::optional<std::string>(*m.body()) : std::nullopt;
          for (const auto& h : m.headers())
            seen.headers.emplace_back(std::string(h.name),
                                      h.value ? std::optional<std::string>(*h.value) : std::nullopt);
          same = seen.key == odd.key && seen.body == odd.body && seen.headers == odd.headers &&
                 seen.topic == odd.topic && seen.partition == 7 && m.attempt() == 1001;
        })) == std::vector{Fate::applied});
  CHECK(same);
}

TEST_CASE("a tombstone is retried as a tombstone") {
  DeadLetterDatabase db;
  Inbox inbox(db.inbox());
  auto tombstone = keyed(1);
  tombstone.body = std::nullopt;
  CHECK(fate_of(inbox, last_attempt(tombstone), broken) == Fate::dead);
  CHECK(db.retry(1));
  CHECK(fates(inbox.retry_dead([](Transaction&, const Message& m) {
          if (m.body()) throw std::runtime_error("a body");
        })) == std::vector{Fate::applied});
}

TEST_CASE("Retry in a retry is taken again later, by itself, and the queue waits in order") {
  DeadLetterDatabase db;
  Inbox inbox(db.inbox());
  CHECK(fate_of(inbox, last_attempt(keyed(1)), broken) == Fate::dead);
  CHECK(fate_of(inbox, keyed(2)) == Fate::parked);
  CHECK(db.retry(1));
  int calls = 0;
  const auto once_not_now = [&](Transaction& tx, const Message& m) {
    if (++calls == 1) throw Retry("not now");
    record_effect(tx, m);
  };
  CHECK(fates(inbox.retry_dead(once_not_now)) == std::vector{Fate::failed});
  eventually("both are applied", [&] {
    static_cast<void>(inbox.retry_dead(once_not_now));
    return db.effects() == 2;
  });
  CHECK(db.order() == "1,2");
}

TEST_CASE("a discarded message is never applied, and what waited behind it goes on in order") {
  DeadLetterDatabase db;
  Inbox inbox(db.inbox());
  CHECK(fate_of(inbox, last_attempt(keyed(1)), broken) == Fate::dead);
  for (int n = 2; n <= 3; ++n) CHECK(fate_of(inbox, keyed(n)) == Fate::parked);
  CHECK(db.discard(1));
  CHECK_FALSE(db.discard(1));
  CHECK(fate_of(inbox, keyed(4)) == Fate::parked);
  CHECK(fates(inbox.retry_dead(record_effect)) == std::vector(3, Fate::applied));
  CHECK(db.order() == "2,3,4");
  CHECK(db.parked_keys() == 0);
  CHECK(db.state_of(1) == "discarded");
  CHECK(inbox.process(keyed(1).record(), record_effect).verdict == Verdict::duplicate);
  CHECK(db.number(
            "SELECT count(*) FROM dead_msgs WHERE resolution LIKE 'discarded by %: agreed with the bank'") ==
        1);
}

TEST_CASE("discarding the last of a queue lets its key go at once") {
  DeadLetterDatabase db;
  Inbox inbox(db.inbox());
  CHECK(fate_of(inbox, last_attempt(keyed(1)), broken) == Fate::dead);
  CHECK(db.discard(1));
  CHECK(db.parked_keys() == 0);
  CHECK(fate_of(inbox, keyed(2)) == Fate::applied);
}

TEST_CASE(
    "a conflict and a malformed message can be discarded, never applied, and the first copy stays as it is") {
  DeadLetterDatabase db;
  Inbox inbox(db.inbox());
  CHECK(fate_of(inbox, keyed(1)) == Fate::applied);
  auto conflict = keyed(1);
  conflict.body = "other", conflict.offset = 9;
  CHECK(fate_of(inbox, conflict) == Fate::dead);
  CHECK(must(db.session.exec("SELECT count(*) FROM dead_msgs")).integer(0, 0) == 1);
  const auto refused = db.session.exec("SELECT inbox_dead_retry(" + std::to_string(db.id_of(1)) + ")");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == "55000");
  CHECK(db.discard(1));
  CHECK(db.state_of(1) == "applied");
  CHECK_FALSE(db.session.exec("SELECT inbox_dead_discard(1, ' ')").has_value());
}

TEST_CASE("an expired message that a person vouches for is applied once") {
  DeadLetterDatabase db;
  Inbox inbox(db.inbox());
  inbox.check();
  must(db.session.exec("UPDATE inbox_consumer SET low_water = '2030-01-01'"));
  const auto old = letter("0190a8c0-1c2d-7000-8000-000000000001");  // of 2024
  CHECK(inbox.process(old.record(), record_effect).verdict == Verdict::expired);
  must(db.session.exec("SELECT inbox_dead_retry(id) FROM dead_msgs"));
  CHECK(fates(inbox.retry_dead(record_effect)) == std::vector{Fate::applied});
  CHECK(inbox.process(old.record(), record_effect).verdict == Verdict::duplicate);
  CHECK(db.effects() == 1);
}

TEST_CASE("with the guard a dead message that a later one overtook is stale when it is retried") {
  DeadLetterDatabase db;
  auto options = db.inbox();
  options.guard = Guard::by_seq;
  options.after_attempts = AfterAttempts::dead_letter;
  Inbox inbox(options);
  auto first = keyed(1), second = keyed(2);
  first.headers.emplace_back("outbox-seq", "1");
  second.headers.emplace_back("outbox-seq", "2");
  CHECK(fate_of(inbox, last_attempt(first), broken) == Fate::dead);
  CHECK(fate_of(inbox, second) == Fate::applied);
  CHECK(db.retry(1));
  const auto outcomes = inbox.retry_dead(record_effect);
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].verdict == Verdict::stale);
  CHECK(db.order() == "2");
  CHECK(db.state_of(1) == "discarded");
  CHECK(db.text("SELECT resolution FROM dead_msgs") == "stale");
}

TEST_CASE("two messages with the same payload at the same place of a topic made again are both kept") {
  DeadLetterDatabase db;
  Inbox inbox(db.inbox());
  auto first = keyed(1), second = keyed(2);
  second.offset = first.offset, second.body = first.body;
  for (const auto& one : {first, second})
    CHECK(fate_of(inbox, one, [](Transaction&, const Message&) { throw Reject("no"); }) == Fate::dead);
  CHECK(db.dead() == 2);
}

TEST_CASE("while a retry works on a key, a live message of it waits, and comes after") {
  DeadLetterDatabase db;
  Inbox inbox(db.inbox());
  CHECK(fate_of(inbox, last_attempt(keyed(1)), broken) == Fate::dead);
  CHECK(db.retry(1));
  std::atomic<bool> inside = false, go = false;
  std::thread retrying([&] {
    Inbox other(db.inbox());
    static_cast<void>(other.retry_dead([&](Transaction& tx, const Message& m) {
      record_effect(tx, m);
      inside = true;
      eventually("the live message waits", [&] { return go.load(); });
    }));
  });
  eventually("the retry is inside", [&] { return inside.load(); });
  Fate live{};
  std::thread living([&] { live = fate_of(inbox, keyed(2)); });
  eventually("the live message waits for the key", [&] {
    return db.number(
               "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
               " AND application_name LIKE 'outbox:%' AND wait_event_type = 'Lock'") > 0;
  });
  go = true;
  retrying.join();
  living.join();
  CHECK(live == Fate::applied);
  CHECK(db.order() == "1,2");
  CHECK(db.parked_keys() == 0);
}

TEST_CASE("retries and live messages of three keys at once, with failures: none overtakes, one effect each") {
  DeadLetterDatabase db;
  constexpr int total = 240, keys = 3;
  std::atomic<bool> done = false;
  const auto flaky = [](unsigned seed) {
    return [random = std::make_shared<std::mt19937>(seed)](Transaction& tx, const Message& m) {
      record_effect(tx, m);
      if ((*random)() % 5 == 0) throw std::runtime_error("flaky");
    };
  };
  std::vector<std::thread> retrying;
  for (unsigned n = 0; n < 2; ++n)
    retrying.emplace_back([&, n] {
      Inbox inbox(db.inbox());
      auto session = db.database.session();
      const auto handler = flaky(n);
      while (!done) {
        must(session.exec(
            "SELECT inbox_dead_retry(id) FROM (SELECT id FROM dead_msgs WHERE resolved_at IS NULL"
            " ORDER BY topic, key_sha256, id) d"));
        static_cast<void>(inbox.retry_dead(handler));
      }
    });
  std::vector<std::thread> living;
  for (int k = 0; k < keys; ++k)
    living.emplace_back([&, k] {
      auto options = db.inbox();
      options.attempts_max = 1;
      Inbox inbox(options);
      const auto handler = flaky(static_cast<unsigned>(100 + k));
      for (int n = k; n < total; n += keys) {
        auto one = keyed(n, "key" + std::to_string(k));
        one.partition = k;
        eventually("it is settled", [&] { return inbox.process(one.record(), handler).settled(); });
      }
    });
  for (auto& thread : living) thread.join();
  eventually(
      "every queue is empty", [&] { return db.number("SELECT count(*) FROM inbox_parked_key") == 0; },
      Millis{60'000});
  done = true;
  for (auto& thread : retrying) thread.join();
  CHECK(db.number("SELECT count(DISTINCT msg) FROM effect") == total);
  CHECK(db.effects() == total);
  CHECK(db.number("SELECT count(*) FROM (SELECT off < lag(off) OVER (PARTITION BY part ORDER BY seq) AS back"
                  " FROM effect) o WHERE back") == 0);
}
