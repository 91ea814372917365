// Daily partitions, made ahead and beside the traffic.

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <future>
#include <mutex>
#include <vector>

#include "sql_fixture.hpp"

namespace outbox {
namespace {

using test::ask;
using test::eventually;
using test::make_partitions;
using test::must;
using test::OutboxDatabase;
using test::refusal;

std::string day_name(pg::Session& session, int days) {
  return ask(session,
             "SELECT 'outbox_msg_p' || to_char(now() AT TIME ZONE 'UTC' + $1 * interval '1 day', 'YYYYMMDD')",
             pg::Params{}.i32(days));
}

}  // namespace

TEST_CASE("partitions reach from yesterday to the day asked for, once") {
  OutboxDatabase outbox({.table = {"public", "outbox_msg"}, .days_ahead = 2});
  auto& sql = outbox.sql();
  const auto count =
      "SELECT inhparent::regclass, count(*) FROM pg_inherits WHERE inhparent IN "
      "('outbox_msg'::regclass, 'processed_msgs'::regclass) GROUP BY 1 ORDER BY 1";
  CHECK(ask(sql, count) == "outbox_msg|5 processed_msgs|6");
  CHECK(ask(sql, "SELECT outbox_ensure_partitions(2)") == "0");
  CHECK(make_partitions(sql, 4) == 4);
  CHECK(ask(sql, count) == "outbox_msg|7 processed_msgs|8");
  CHECK(refusal(sql, "SELECT outbox_ensure_partitions(-1)") == "22023");
  CHECK(refusal(sql, "SELECT outbox_ensure_partitions(367)") == "22023");
  CHECK(refusal(sql, "SELECT outbox_ensure_partitions(7, -1)") == "22023");
}

TEST_CASE("days are UTC's, whatever the session's time zone") {
  OutboxDatabase outbox({.table = {"public", "outbox_msg"}, .days_ahead = 0});
  auto& sql = outbox.sql();
  ask(sql, "SET timezone = 'Pacific/Kiritimati'");
  make_partitions(sql, 1);
  ask(sql, "SET timezone = 'UTC'");
  CHECK(ask(sql,
            "SELECT pg_get_expr(relpartbound, oid) = format('FOR VALUES FROM (''%s 00:00:00+00'') TO (''%s "
            "00:00:00+00'')', "
            "  now()::date + 1, now()::date + 2) FROM pg_class WHERE relname = $1",
            pg::Params{}.text(day_name(sql, 1))) == "t");
}

TEST_CASE("every partition has the table's indexes and its own storage settings") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  CHECK(ask(sql,
            "SELECT DISTINCT count(*) FROM pg_index JOIN pg_inherits ON indrelid = inhrelid "
            "WHERE inhparent = 'outbox_msg'::regclass GROUP BY indrelid") == "6");
  CHECK(ask(sql,
            "SELECT count(*) FROM pg_class JOIN pg_inherits ON oid = inhrelid WHERE inhparent = "
            "'outbox_msg'::regclass "
            "AND NOT reloptions @> '{fillfactor=50,autovacuum_vacuum_scale_factor=0.02}'") == "0");
  CHECK(ask(sql,
            "SELECT count(DISTINCT reloptions) FROM pg_class JOIN pg_inherits ON oid = inhrelid "
            "WHERE inhparent = 'outbox_msg'::regclass") == "1");
}

TEST_CASE("rows that waited in the default partition move to their day's when it is made") {
  OutboxDatabase outbox({.table = {"public", "outbox_msg"}, .days_ahead = 0});
  auto& sql = outbox.sql();
  ask(sql,
      R"(INSERT INTO outbox_msg (topic, msg_key, body, headers, created_at, status, kafka_offset, generation)
              VALUES ('t', 'k', '{"a":1}', '{"h":"v"}', now() + interval '1 day', 'SENT', 7, 3),
                     ('t', NULL, NULL, '{}', now() + interval '1 day', 'PENDING', NULL, 0),
                     ('t', 'old', NULL, '{}', now() - interval '1 year', 'PENDING', NULL, 0))");
  ask(sql,
      "INSERT INTO processed_msgs (consumer, msg_id, id_time, payload_sha256, topic, partition, \"offset\") "
      "SELECT 'c', id, outbox_id_time(id), sha256('x'), 't', 0, 1 FROM (SELECT "
      "(overlay(lpad(to_hex((extract(epoch FROM "
      "now() + interval '1 day') * 1000)::bigint), 12, '0') PLACING '-' FROM 9 FOR 0) || "
      "'-7000-8000-000000000000')::uuid id) x");
  ask(sql, "CREATE TABLE before AS SELECT * FROM outbox_msg");
  CHECK(make_partitions(sql, 1) == 2);
  CHECK(ask(sql,
            "SELECT count(*) FROM (SELECT to_jsonb(b) FROM before b EXCEPT SELECT to_jsonb(o) FROM "
            "outbox_msg o) x") == "0");
  CHECK(ask(sql, "SELECT id, tableoid::regclass FROM outbox_msg ORDER BY id") ==
        "1|" + day_name(sql, 1) + " 2|" + day_name(sql, 1) + " 3|outbox_msg_default");
  CHECK(ask(sql, "SELECT tableoid::regclass::text LIKE 'processed_msgs_p%' FROM processed_msgs") == "t");
}

TEST_CASE("a day ahead is made beside open inserts, and keeps no insert waiting") {
  OutboxDatabase outbox({.table = {"public", "outbox_msg"}, .days_ahead = 1});
  auto business = outbox.session();
  must(business.exec_script("BEGIN; INSERT INTO outbox_msg (topic) VALUES ('t')"));
  auto maker = outbox.session();
  for (int day = 0; day < 4; ++day) {
    must(maker.exec_script("BEGIN"));
    CHECK(ask(maker, "SELECT outbox_ensure_partitions(3)") == "1");
    must(business.exec_script("SET LOCAL lock_timeout = '1s'"));
    CHECK(refusal(business, "INSERT INTO outbox_msg (topic) VALUES ('t')") == "accepted");
    must(maker.exec_script("COMMIT"));
  }
  CHECK(ask(maker, "SELECT outbox_ensure_partitions(3)") == "0");
  must(business.exec_script("COMMIT"));
}

TEST_CASE(
    "a missing day whose rows come all the time is attached, and no insert fails or deadlocks over it") {
  struct Case {
    std::string table;
    std::string insert;
  };
  const Case cases[] = {
      {"outbox_msg", "INSERT INTO outbox_msg (topic, msg_key, body) VALUES ('t', 'k', '{}')"},
      {"processed_msgs",
       "INSERT INTO processed_msgs (consumer, msg_id, id_time, payload_sha256, topic, partition, \"offset\") "
       "SELECT 'c', id, outbox_id_time(id), sha256('x'), 't', 0, 1 FROM (SELECT outbox_uuid_v7() AS id) x"}};
  for (const Case& one : cases) {
    CAPTURE(one.table);
    OutboxDatabase outbox({.table = {"public", "outbox_msg"}, .days_ahead = 0});
    auto& sql = outbox.sql();
    // A deadlock is found before any lock_timeout ends: whoever waits while it holds is told so.
    ask(sql,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 100', current_database()); END "
        "$$");
    for (int round = 0; round < 2; ++round) {
      ask(sql,
          "DO $$ DECLARE part regclass; BEGIN FOR part IN SELECT inhrelid FROM pg_inherits WHERE inhparent = "
          "'" +
              one.table +
              "'::regclass AND inhrelid::regclass::text ~ '_p2' LOOP EXECUTE 'DROP TABLE ' || part; END "
              "LOOP; END $$");
      std::atomic<bool> done = false;
      std::atomic<int> written = 0;
      std::mutex mutex;
      std::string refused;
      std::vector<std::future<void>> writers;
      for (int writer = 0; writer < 4; ++writer) {
        writers.push_back(std::async(std::launch::async, [&, writer] {
          auto session = outbox.session();
          // One of them reads what waits first, as an application may.
          const std::string statements =
              writer > 0 ? one.insert
                         : "BEGIN; SELECT FROM " + one.table + "_default LIMIT 1; " + one.insert + "; COMMIT";
          while (!done) {
            if (const Status accepted = session.exec_script(statements); !accepted) {
              const std::scoped_lock lock(mutex);
              refused += accepted.error().text() + "\n";
              return;
            }
            ++written;
          }
        }));
      }
      eventually("rows are written", [&] { return written > 100; });
      make_partitions(sql, 0);
      const int before = written;
      eventually("rows are written afterwards", [&] { return written > before + 100; });
      done = true;
      for (auto& writer : writers) writer.get();
      CHECK(refused == "");
      CHECK(ask(sql, "SELECT count(*) FROM " + one.table + "_default") == "0");
    }
  }
}

TEST_CASE(
    "a day that can't be attached is asked for briefly: inserts behind it go on, and days ahead are made") {
  OutboxDatabase outbox({.table = {"public", "outbox_msg"}, .days_ahead = 1});
  auto& sql = outbox.sql();
  ask(sql, "DROP TABLE " + day_name(sql, 0));
  auto business = outbox.session();
  must(business.exec_script("BEGIN; INSERT INTO outbox_msg (topic) VALUES ('open')"));
  std::atomic<bool> given_up = false;
  std::future<void> others = std::async(std::launch::async, [&] {
    auto other = outbox.session();
    must(other.exec_script("SET lock_timeout = '1s'"));
    do {
      CHECK(refusal(other, "INSERT INTO outbox_msg (topic) VALUES ('other')") == "accepted");
    } while (!given_up);
  });
  CHECK(refusal(sql, "SELECT outbox_ensure_partitions(1)") == "55P03");
  given_up = true;
  others.get();
  must(business.exec_script("COMMIT; BEGIN"));
  // Nobody is on the way into the DEFAULT partition of a day to come, though that one is read.
  CHECK(make_partitions(sql, 1) == 1);
  CHECK(ask(sql, "SELECT count(*) FROM outbox_msg_default") == "0");
  must(business.exec_script("COMMIT"));
}

TEST_CASE(
    "rows of a day that are too many to move beside the traffic stay where they are, and that is answered") {
  OutboxDatabase outbox({.table = {"public", "outbox_msg"}, .days_ahead = 2});
  auto& sql = outbox.sql();
  ask(sql,
      "INSERT INTO outbox_msg (topic, created_at) SELECT 't', now() + interval '3 days' FROM "
      "generate_series(1, 6)");
  CHECK(make_partitions(sql, 2) == 0);
  for (const std::string answer : {"1", "1", "1", "-1"})
    CHECK(ask(sql, "SELECT outbox_ensure_partitions(4, 5)") == answer);
  CHECK(ask(sql, "SELECT count(*) FROM outbox_msg_default") == "6");
  CHECK(ask(sql, "SELECT outbox_ensure_partitions(4, 6)") == "1");
  CHECK(ask(sql, "SELECT outbox_ensure_partitions(4, 6)") == "0");
  CHECK(ask(sql, "SELECT count(*) FROM outbox_msg_default") == "0");
}

TEST_CASE("two sessions that make partitions at once both succeed") {
  OutboxDatabase outbox({.table = {"public", "outbox_msg"}, .days_ahead = 0});
  std::array<int, 2> made{};
  std::vector<std::future<void>> makers;
  makers.reserve(made.size());
  for (auto& answer : made) {
    makers.push_back(std::async(std::launch::async, [&outbox, &answer] {
      auto session = outbox.session();
      answer = make_partitions(session, 10);
    }));
  }
  for (auto& maker : makers) maker.get();
  CHECK(made[0] + made[1] == 20);
}

}  // namespace outbox
