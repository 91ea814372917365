// Holds end, and dead rows are retried or given up, without a later row overtaking.

#include <doctest/doctest.h>

#include <atomic>
#include <future>

#include "sql_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace outbox {
namespace {

using test::ask;
using test::must;
using test::OutboxDatabase;
using test::refusal;

// A dead row of key k, two held ones behind it, one held of another key, and k's hold.
struct DeadKey : OutboxDatabase {
  DeadKey() {
    ask(sql(),
        "INSERT INTO outbox_msg (topic, msg_key, status) VALUES ('t', 'k', 'DEAD'), ('t', 'k', 'HELD'), "
        "('t', 'k', 'HELD'), ('t', 'other', 'HELD'), ('u', 'k', 'HELD')");
    ask(sql(),
        "INSERT INTO outbox_hold (source, scope, topic, msg_key, cause) VALUES ('public.outbox_msg', 'key', "
        "'t', "
        "'k', 'dead')");
  }
  std::string states() { return ask(sql(), "SELECT id, status FROM outbox_msg ORDER BY id"); }
  std::string holds() { return ask(sql(), "SELECT count(*) FROM outbox_hold"); }
};

// Whether the session of that name comes to wait for a lock.
bool waits(OutboxDatabase& outbox, const std::string& name) {
  return test::happens_within(Millis{10'000}, [&] {
    return ask(outbox.sql(),
               "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 "
               "AND wait_event_type = 'Lock'",
               pg::Params{}.text(name)) == "1";
  });
}

}  // namespace

TEST_CASE("a release lets go the rows of its scope and nothing else") {
  DeadKey outbox;
  CHECK(ask(outbox.sql(), "SELECT outbox_release('public.outbox_msg', 'key', 't', 'k')") == "2");
  CHECK(outbox.states() == "1|DEAD 2|PENDING 3|PENDING 4|HELD 5|HELD");
  CHECK(outbox.holds() == "0");
  ask(outbox.sql(),
      "INSERT INTO outbox_hold (source, scope, topic) VALUES ('public.outbox_msg', 'topic', 't')");
  CHECK(ask(outbox.sql(), "SELECT outbox_release('public.outbox_msg', 'topic', 't')") == "1");
  CHECK(outbox.states() == "1|DEAD 2|PENDING 3|PENDING 4|PENDING 5|HELD");
  CHECK(outbox.holds() == "0");
  CHECK(refusal(outbox.sql(), "SELECT outbox_release('public.outbox_msg', 'nonsense', 't')") == "22023");
  CHECK(refusal(outbox.sql(), "SELECT outbox_release('public.other', 'topic', 't')") == "22023");
}

TEST_CASE("nobody ever sees a later row of a released scope without the earlier ones") {
  DeadKey outbox;
  std::atomic<bool> done = false;
  std::atomic<int> overtaken = 0;
  std::future<void> reader = std::async(std::launch::async, [&] {
    auto session = outbox.session();
    for (int look = 0; !done && look < 100'000; ++look) {
      // The next row of the key is inserted PENDING behind the held ones; a hold still in place means: not
      // claimable.
      const std::string seen = ask(session,
                                   "SELECT min(id) FROM outbox_msg WHERE topic = 't' AND msg_key = 'k' "
                                   "AND status = 'PENDING' AND NOT EXISTS (SELECT FROM outbox_hold)");
      if (seen != "null" && seen != "2") ++overtaken;
    }
  });
  ask(outbox.sql(), "INSERT INTO outbox_msg (topic, msg_key) VALUES ('t', 'k')");
  for (int round = 0; round < 200; ++round) {
    must(outbox.sql().exec_script("SELECT outbox_release('public.outbox_msg', 'key', 't', 'k')"));
    must(
        outbox.sql().exec_script("BEGIN; INSERT INTO outbox_hold (source, scope, topic, msg_key) VALUES "
                                 "('public.outbox_msg', 'key', 't', 'k');"
                                 "UPDATE outbox_msg SET status = 'HELD' WHERE id IN (2, 3); COMMIT"));
  }
  done = true;
  reader.get();
  CHECK(overtaken == 0);
}

TEST_CASE("a release waits for a relay that is setting rows held behind it, and leaves none behind") {
  DeadKey outbox;
  ask(outbox.sql(), "INSERT INTO outbox_msg (topic, msg_key) VALUES ('t', 'k')");
  auto relay = outbox.session();
  must(relay.exec_script(
      "BEGIN; SELECT FROM outbox_hold FOR SHARE; UPDATE outbox_msg SET status = 'HELD' WHERE id = 6"));
  std::future<void> release = std::async(std::launch::async, [&] {
    auto session = outbox.session();
    ask(session, "SET application_name = 'release'");
    ask(session, "SELECT outbox_release('public.outbox_msg', 'key', 't', 'k')");
  });
  CHECK(waits(outbox, "release"));
  must(relay.exec_script("COMMIT"));
  release.get();
  CHECK(ask(outbox.sql(),
            "SELECT count(*) FROM outbox_msg WHERE topic = 't' AND msg_key = 'k' AND status = 'HELD'") ==
        "0");
}

TEST_CASE("a retried row goes first, as a new generation, and its key is free") {
  DeadKey outbox;
  CHECK(ask(outbox.sql(), "SELECT outbox_dead_retry(1)") == "t");
  CHECK(outbox.states() == "1|PENDING 2|PENDING 3|PENDING 4|HELD 5|HELD");
  CHECK(ask(outbox.sql(), "SELECT generation FROM outbox_msg WHERE id = 1") == "1");
  CHECK(outbox.holds() == "0");
  CHECK(ask(outbox.sql(), "SELECT outbox_dead_retry(1)") == "f");
  CHECK(ask(outbox.sql(), "SELECT outbox_dead_retry(99)") == "f");
}

TEST_CASE("a discarded row says why, and its key is free") {
  DeadKey outbox;
  CHECK(ask(outbox.sql(), "SELECT outbox_dead_discard(1, 'sent by hand')") == "t");
  CHECK(outbox.states() == "1|DISCARDED 2|PENDING 3|PENDING 4|HELD 5|HELD");
  CHECK(
      ask(outbox.sql(),
          "SELECT last_error LIKE 'discarded by %: sent by hand', generation FROM outbox_msg WHERE id = 1") ==
      "t|0");
  CHECK(outbox.holds() == "0");
}

TEST_CASE("a key stays on hold until its last dead row is decided, also by two at once") {
  DeadKey outbox;
  ask(outbox.sql(), "UPDATE outbox_msg SET status = 'DEAD' WHERE id = 2");
  auto first = outbox.session();
  must(first.exec_script("BEGIN"));
  CHECK(ask(first, "SELECT outbox_dead_discard(2, 'x')") == "t");
  CHECK(ask(first, "SELECT count(*) FROM outbox_hold") == "1");
  std::future<void> second = std::async(std::launch::async, [&] {
    auto session = outbox.session();
    ask(session, "SET application_name = 'second'");
    ask(session, "SELECT outbox_dead_retry(1)");
  });
  CHECK(waits(outbox, "second"));
  must(first.exec_script("COMMIT"));
  second.get();
  CHECK(outbox.states() == "1|PENDING 2|DISCARDED 3|PENDING 4|HELD 5|HELD");
  CHECK(outbox.holds() == "0");
}

TEST_CASE("an operator's pause outlives the dead row of its key, and a dead row's hold outlives the pause") {
  for (const char* end : {"SELECT outbox_dead_retry(1)", "SELECT outbox_dead_discard(1, 'known')"}) {
    for (const bool paused_first : {true, false}) {
      DeadKey outbox;
      auto& sql = outbox.sql();
      if (paused_first) ask(sql, "DELETE FROM outbox_hold");
      CHECK(ask(sql, "SELECT outbox_pause('key', 't', 'k', 'fraud case', 'alice')") == "t");
      if (paused_first)
        ask(sql,
            "INSERT INTO outbox_hold (source, scope, topic, msg_key, cause) VALUES ('public.outbox_msg', "
            "'key', "
            "'t', 'k', 'dead')");
      CHECK(ask(sql, end) == "t");
      CHECK(ask(sql, "SELECT cause, person, reason FROM outbox_hold") ==
            "operator|alice|operator: fraud case (alice)");
      CHECK(ask(sql, "SELECT status FROM outbox_msg WHERE id IN (2, 3)") == "HELD HELD");
      CHECK(ask(sql, "SELECT r.* FROM outbox_resume('key', 't', 'k', '', 'bob') r") == "alice|2|null");
      CHECK(outbox.holds() == "0");
    }
  }
  DeadKey outbox;
  auto& sql = outbox.sql();
  ask(sql, "UPDATE outbox_hold SET reason = 'too large'");
  CHECK(ask(sql, "SELECT r.* FROM outbox_resume('key', 't', 'k', '', 'bob') r") ==
        "null|null|dead: too large");
  CHECK(ask(sql, "SELECT outbox_pause('key', 't', 'k', 'audit', 'bob')") == "t");
  CHECK(ask(sql, "SELECT r.* FROM outbox_resume('key', 't', 'k', '', 'bob') r") ==
        "bob|null|dead: too large");
  CHECK(outbox.states() == "1|DEAD 2|HELD 3|HELD 4|HELD 5|HELD");
  ask(sql, "DELETE FROM outbox_msg WHERE id = 1");  // by hand: nothing is left to retry
  CHECK(ask(sql, "SELECT r.* FROM outbox_resume('key', 't', 'k', '', 'bob') r") == "null|2|null");
  CHECK(outbox.holds() == "0");
}

TEST_CASE("each person's pause is their own, and nobody ends another's by accident") {
  for (const std::string scope : {"key", "topic", "pipeline"}) {
    CAPTURE(scope);
    OutboxDatabase outbox;
    auto& sql = outbox.sql();
    const auto pause = [&](const std::string& person) {
      return ask(sql, "SELECT outbox_pause('" + scope + "', 't', 'k', 'why', '" + person + "')");
    };
    const auto resume = [&](const std::string& person, const std::string& more = "") {
      return "SELECT r.* FROM outbox_resume('" + scope + "', 't', 'k', '', '" + person + "'" + more + ") r";
    };
    CHECK(ask(sql, resume("alice")).starts_with("null|"));
    CHECK(pause("alice") == "t");
    CHECK(pause("alice") == "f");
    CHECK(pause("bob") == "t");
    CHECK(refusal(sql, resume("carol")) == "22023");
    CHECK(ask(sql, resume("alice")) == "alice|null|operator: why (bob)");
    CHECK(pause("alice") == "t");
    CHECK(ask(sql, resume("carol", ", 'bob'")) == "bob|null|operator: why (alice)");
    CHECK(ask(sql, resume("carol")) == "alice|0|null");
    CHECK(ask(sql, "SELECT count(*) FROM outbox_hold") == "0");
    CHECK(ask(sql, "SELECT count(*) FROM outbox_operation WHERE action = 'resume'") == "4");
    CHECK(refusal(sql, "SELECT outbox_pause('key', 't', 'k', 'why', repeat('x', 101))") == "22023");
  }
}

TEST_CASE("of two that end the last two reasons at once, one lets the rows go") {
  DeadKey outbox;
  ask(outbox.sql(), "SELECT outbox_pause('key', 't', 'k', 'why', 'alice')");
  auto first = outbox.session();
  must(first.exec_script("BEGIN"));
  ask(first, "SELECT r.* FROM outbox_resume('key', 't', 'k', '', 'alice') r");
  std::future<void> second = std::async(std::launch::async, [&] {
    auto session = outbox.session();
    ask(session, "SET application_name = 'second'");
    ask(session, "SELECT outbox_dead_discard(1, 'x')");
  });
  CHECK(waits(outbox, "second"));
  must(first.exec_script("COMMIT"));
  second.get();
  CHECK(outbox.holds() == "0");
  CHECK(outbox.states() == "1|DISCARDED 2|PENDING 3|PENDING 4|HELD 5|HELD");
}

TEST_CASE("a hold says what it holds, and only that") {
  OutboxDatabase outbox;
  const auto hold = [&](const std::string& values) {
    return refusal(outbox.sql(),
                   "INSERT INTO outbox_hold (source, scope, topic, msg_key) VALUES ('s', " + values + ")");
  };
  CHECK(hold("'key', 't', 'k'") == "accepted");
  CHECK(hold("'key', 't', ''") == "accepted");
  CHECK(hold("'key', 't', 'k'") == "23505");
  CHECK(hold("'topic', 't', ''") == "accepted");
  CHECK(hold("'topic', 't', 'k'") == "23514");
  CHECK(hold("'pipeline', '', ''") == "accepted");
  CHECK(hold("'pipeline', 't', ''") == "23514");
  CHECK(hold("'partition', 't', ''") == "23514");
  CHECK(refusal(outbox.sql(),
                "INSERT INTO outbox_hold (source, scope, topic, cause) VALUES ('s', 'topic', 't', 'whim')") ==
        "23514");
  CHECK(refusal(outbox.sql(),
                "INSERT INTO outbox_hold (source, scope, topic, cause, person) VALUES ('s', 'topic', 't', "
                "'kafka', 'alice')") == "23514");
}

}  // namespace outbox
