// The message's id, and the time inside it.

#include <doctest/doctest.h>

#include "sql_fixture.hpp"

namespace outbox {
namespace {
using test::ask;
using test::OutboxDatabase;
using test::refusal;
}  // namespace

TEST_CASE("outbox_uuid_v7 gives version 7, the RFC's variant, this moment, and no id twice") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  ask(sql, "CREATE TABLE ids AS SELECT outbox_uuid_v7() AS id FROM generate_series(1, 10000)");
  CHECK(ask(sql, "SELECT count(DISTINCT id), bool_and(id::text ~ '^.{14}7.{4}[89ab]') FROM ids") ==
        "10000|t");
  CHECK(ask(sql,
            "SELECT bool_and(outbox_id_time(id) BETWEEN now() - interval '1 minute' AND clock_timestamp()) "
            "FROM ids") == "t");
  CHECK(ask(sql, "SELECT count(DISTINCT substr(id::text, 20, 1)) FROM ids") == "4");
}

TEST_CASE("ids made a millisecond apart are in order") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  CHECK(ask(sql,
            "SELECT bool_and(a < b) FROM (SELECT outbox_uuid_v7() a, pg_sleep(0.002), outbox_uuid_v7() b "
            "FROM generate_series(1, 20)) x") == "t");
}

TEST_CASE("the time of an id is exact to the millisecond, in every time zone") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  ask(sql, "SET timezone = 'Asia/Kathmandu'");
  // The example of RFC 9562, appendix A.6.
  CHECK(ask(sql, "SELECT outbox_id_time('017F22E2-79B0-7CC3-98C4-DC0C0C07398F') = '2022-02-22 19:22:22Z'") ==
        "t");
  CHECK(ask(sql, "SELECT outbox_id_time('00000000-0000-7000-8000-000000000000') = 'epoch'::timestamptz") ==
        "t");
  CHECK(ask(sql,
            "SELECT count(*) FROM generate_series(1700000000000, 1700000100000, 7) ms "
            "WHERE (extract(epoch FROM outbox_id_time((overlay(lpad(to_hex(ms), 12, '0') PLACING '-' FROM 9 "
            "FOR 0) || "
            "       '-7000-8000-000000000000')::uuid)) * 1000) <> ms") == "0");
}

TEST_CASE("an id without a time is at -infinity") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  for (const std::string id :
       {"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "017f22e2-79b0-4cc3-98c4-dc0c0c07398f", "017f22e2-79b0-1cc3-98c4-dc0c0c07398f",
        "017f22e2-79b0-7cc3-18c4-dc0c0c07398f", "017f22e2-79b0-7cc3-c8c4-dc0c0c07398f"}) {
    CAPTURE(id);
    CHECK(ask(sql, "SELECT outbox_id_time($1)", pg::Params{}.untyped(id)) == "-infinity");
  }
  CHECK(ask(sql, "SELECT outbox_id_time(NULL)") == "null");
}

TEST_CASE("a message is processed once per consumer: no other id_time makes it fresh") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  const auto insert = [&](const std::string& consumer, const std::string& id, const std::string& time) {
    return refusal(sql,
                   "INSERT INTO processed_msgs (consumer, msg_id, id_time, payload_sha256, topic, partition, "
                   "\"offset\") "
                   "VALUES ('" +
                       consumer + "', '" + id + "', " + time + ", sha256('x'), 't', 0, 1)");
  };
  const std::string timed = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
  const std::string timeless = "017f22e2-79b0-4cc3-98c4-dc0c0c07398f";
  CHECK(insert("a", timed, "outbox_id_time('" + timed + "')") == "accepted");
  CHECK(insert("a", timed, "outbox_id_time('" + timed + "')") == "23505");
  CHECK(insert("a", timed, "now()") == "23514");
  CHECK(insert("a", timed, "'-infinity'") == "23514");
  CHECK(insert("b", timed, "outbox_id_time('" + timed + "')") == "accepted");
  CHECK(insert("a", timeless, "'-infinity'") == "accepted");
  CHECK(insert("a", timeless, "'-infinity'") == "23505");
  CHECK(insert("a", timeless, "now()") == "23514");
  CHECK(ask(sql, "SELECT tableoid::regclass, count(*) FROM processed_msgs GROUP BY 1 ORDER BY 1") ==
        "processed_msgs_timeless|1 processed_msgs_default|2");
}

TEST_CASE("a record that comes again is among the dead messages once") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  const std::string insert =
      "INSERT INTO dead_msgs (consumer, topic, partition, \"offset\", verdict, payload_sha256) "
      "VALUES ('c', 't', 0, 7, 'malformed', NULL) ON CONFLICT DO NOTHING RETURNING id";
  CHECK(ask(sql, insert) == "1");
  CHECK(ask(sql, insert) == "");
  CHECK(refusal(sql, "UPDATE dead_msgs SET resolved_at = now()") == "23514");
}

}  // namespace outbox
