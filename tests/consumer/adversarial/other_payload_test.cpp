// The same id with another payload, in every path: a conflict, loudly, kept with both hashes, never applied.
// Header presets, another created_at and the SQL functions are in cases.json, run by cases_test.cpp.

#include <doctest/doctest.h>

#include <stdexcept>
#include <thread>

#include "letters.hpp"
#include "outbox/inbox.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

struct ConflictDatabase : ServiceDatabase {
  /// Each kept conflict names the hash of what came first and of what came now.
  [[nodiscard]] std::int64_t conflicts(const std::string& first, const std::string& other) {
    return number(
        "SELECT count(*) FROM dead_msgs WHERE verdict = 'conflict' AND error LIKE '%' || "
        "encode(sha256('" +
        first + "'), 'hex') || '%' || encode(sha256('" + other +
        "'), 'hex') || '%' AND payload_sha256 = sha256('" + other + "') AND body = '" + other + "'");
  }
};

Letter with_body(const std::string& body, std::int64_t offset) {
  return letter(v7(1), body, offset);
}

}  // namespace

TEST_CASE("one by one, in a batch, and as two copies of one batch: a conflict") {
  ConflictDatabase db;
  Inbox inbox(db.inbox());
  CHECK(inbox.process(with_body("a", 0).record(), record_effect).fate == Fate::applied);
  CHECK(inbox.process(with_body("b", 1).record(), record_effect).verdict == Verdict::conflict);
  const std::vector batch = {letter(v7(2), "a", 2), with_body("b", 3), letter(v7(3), "a", 4),
                             letter(v7(3), "b", 5), letter(v7(3), "a", 6)};
  const auto outcomes = inbox.process(records(batch), record_effect);
  using enum Verdict;
  const std::vector expected = {fresh, conflict, fresh, conflict, duplicate};
  for (std::size_t i = 0; i < outcomes.size(); ++i) CHECK(outcomes[i].verdict == expected[i]);
  CHECK(db.conflicts("a", "b") == 3);
  CHECK(db.effects() == 3);
}

TEST_CASE("a conflict whose batch is redone because of a failing neighbour is kept once") {
  ConflictDatabase db;
  Inbox inbox(db.inbox());
  CHECK(inbox.process(with_body("a", 0).record(), record_effect).fate == Fate::applied);
  const std::vector batch = {with_body("b", 1), letter(v7(2), "x", 2), letter(v7(3), "y", 3)};
  const auto outcomes = inbox.process(records(batch), [](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    if (m.offset() == 3) throw std::runtime_error("no");
  });
  CHECK(fates(outcomes) == std::vector{Fate::dead, Fate::applied, Fate::failed});
  CHECK(db.conflicts("a", "b") == 1);
  CHECK(db.dead() == 1);
}

TEST_CASE(
    "while another transaction applies the first copy: a conflict once that commits, fresh where it does "
    "not") {
  for (const bool first_fails : {false, true}) {
    ConflictDatabase db;
    std::atomic<bool> inside = false, go = false;
    std::jthread first([&] {
      Inbox inbox(db.inbox());
      static_cast<void>(inbox.process(with_body("a", 0).record(), [&](Transaction& tx, const Message& m) {
        record_effect(tx, m);
        inside = true;
        eventually("the other copy waits", [&] { return go.load(); });
        if (first_fails) throw std::runtime_error("no");
      }));
    });
    eventually("the first is inside", [&] { return inside.load(); });
    Outcome second;
    std::jthread other([&] {
      Inbox inbox(db.inbox());
      second = inbox.process(with_body("b", 1).record(), record_effect);
    });
    eventually("the other copy waits for the index", [&] {
      return db.number(
                 "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                 " AND application_name LIKE 'outbox:%' AND wait_event_type = 'Lock'") > 0;
    });
    go = true;
    first.join();
    other.join();
    CHECK(second.verdict == (first_fails ? Verdict::fresh : Verdict::conflict));
    CHECK(db.effects() == 1);
    CHECK(db.conflicts("a", "b") == (first_fails ? 0 : 1));
  }
}

TEST_CASE("of a message that is parked, dead, expired or discarded: a conflict, and its state stays") {
  ConflictDatabase db;
  Inbox inbox(db.inbox());
  auto failing = with_body("a", 0);
  failing.attempt = 1000;
  CHECK(inbox.process(failing.record(), [](Transaction&, const Message&) { throw std::runtime_error("no"); })
            .fate == Fate::dead);
  CHECK(inbox.process(with_body("b", 1).record(), record_effect).verdict == Verdict::conflict);
  for (const auto* state : {"dead", "discarded"}) {
    must(db.session.exec("UPDATE processed_msgs SET state = '" + std::string(state) + "'"));
    CHECK(inbox.process(with_body("b", state[1] == 'e' ? 2 : 3).record(), record_effect).verdict ==
          Verdict::conflict);
    CHECK(db.text("SELECT state FROM processed_msgs") == state);
  }
  must(db.session.exec("UPDATE inbox_consumer SET low_water = '2030-01-01'"));
  CHECK(inbox.process(with_body("b", 4).record(), record_effect).verdict == Verdict::conflict);
  CHECK(db.conflicts("a", "b") == 4);
  CHECK(db.effects() == 0);
}

TEST_CASE("by each header preset, with another created_at and from one preset to the other: a conflict") {
  const std::vector<std::pair<std::string, std::string>> presets = {
      {"outbox-id", "outbox-created-at"}, {"ce_id", "ce_time"}, {"id", "outbox-created-at"}};
  for (const auto& [first_id, first_time] : presets) {
    for (const auto& [other_id, other_time] : presets) {
      CAPTURE(first_id);
      CAPTURE(other_id);
      ConflictDatabase db;
      Inbox inbox(db.inbox());
      auto first = with_body("a", 0), copy = with_body("a", 1), other = with_body("b", 2);
      first.headers = {{first_id, v7(1)}, {first_time, "2026-11-29T16:05:00Z"}};
      copy.headers = {{other_id, v7(1)}, {other_time, "2020-01-01T00:00:00Z"}};
      other.headers = {{other_id, v7(1)}, {other_time, "2030-01-01T00:00:00Z"}};
      CHECK(inbox.process(first.record(), record_effect).fate == Fate::applied);
      CHECK(inbox.process(copy.record(), record_effect).verdict == Verdict::duplicate);
      CHECK(inbox.process(other.record(), record_effect).verdict == Verdict::conflict);
      CHECK(db.conflicts("a", "b") == 1);
      CHECK(db.effects() == 1);
    }
  }
}
