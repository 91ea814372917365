// What an application meets when it inserts.

#include <doctest/doctest.h>

#include "sql_fixture.hpp"

namespace outbox {
namespace {

using relay::BodyType;
using test::ask;
using test::OutboxDatabase;
using test::refusal;

constexpr std::string_view exact_json = R"({"n":12345678901234567890.10,"e":[],"u":"\u00e9"})";

std::string body_after_insert(BodyType type, std::string_view column) {
  OutboxDatabase outbox({.table = {"public", "outbox_msg"}, .body_type = type, .days_ahead = 0});
  const std::string in =
      type == BodyType::bytea ? "convert_to($1, 'UTF8')" : "$1::" + std::string(to_string(type));
  ask(outbox.sql(), "INSERT INTO outbox_msg (topic, body) VALUES ('t', " + in + ")",
      pg::Params{}.text(exact_json));
  return ask(outbox.sql(), "SELECT " + std::string(column) + " FROM outbox_msg");
}

}  // namespace

TEST_CASE("topic and body are enough, with and without the status given") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  ask(sql, R"(INSERT INTO outbox_msg (topic, body) VALUES ('payment.created', '{"a":1}'))");
  ask(sql,
      R"(INSERT INTO outbox_msg (topic, body, status) VALUES ('payment.created', '{"a":1}', 'PENDING'))");
  CHECK(ask(sql,
            "SELECT id, status, msg_key, available_at, headers, generation, attempts, body_bytes, sent_at "
            "FROM outbox_msg ORDER BY id") ==
        "1|PENDING|null|null|{}|0|0|7|null 2|PENDING|null|null|{}|0|0|7|null");
  CHECK(ask(sql, "SELECT bool_and(xact < pg_current_xact_id() AND created_at <= now()) FROM outbox_msg") ==
        "t");
}

TEST_CASE("a row lands in the partition of its day, or in the default one") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  ask(sql,
      "INSERT INTO outbox_msg (topic, created_at) VALUES ('t', now()), ('t', now() - interval '1 year')");
  CHECK(
      ask(sql,
          "SELECT tableoid::regclass::text = 'outbox_msg_p' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD') "
          "FROM outbox_msg WHERE id = 1") == "t");
  CHECK(ask(sql, "SELECT tableoid::regclass FROM outbox_msg WHERE id = 2") == "outbox_msg_default");
}

TEST_CASE("the shard comes from the key alone, or from the message id where there is no key") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  ask(sql,
      "INSERT INTO outbox_msg (topic, msg_key) SELECT t, k FROM unnest('{a,b}'::text[]) t, "
      "unnest(ARRAY['', 'k1', 'k2', 'ключ', NULL, repeat('x', 2048)]) k, generate_series(1, 20)");
  CHECK(ask(sql, "SELECT count(DISTINCT shard) FROM outbox_msg WHERE msg_key = 'k1'") == "1");
  CHECK(ask(sql,
            "SELECT bool_and(shard = hashtext(msg_key COLLATE \"C\") & 63) FROM outbox_msg "
            "WHERE msg_key IS NOT NULL") == "t");
  CHECK(ask(sql,
            "SELECT bool_and(shard = uuid_hash(msg_id) & 63) AND count(DISTINCT shard) > 5 FROM outbox_msg "
            "WHERE msg_key IS NULL") == "t");
  CHECK(ask(sql, "SELECT min(shard) >= 0 AND max(shard) < 64 FROM outbox_msg") == "t");
  CHECK(refusal(sql, "INSERT INTO outbox_msg (topic, shard) VALUES ('t', 3)") == "428C9");
}

TEST_CASE("a body is kept byte for byte, save that jsonb is its own text form") {
  CHECK(body_after_insert(BodyType::json, "body::text") == exact_json);
  CHECK(body_after_insert(BodyType::text, "body") == exact_json);
  CHECK(body_after_insert(BodyType::bytea, "convert_from(body, 'UTF8')") == exact_json);
  CHECK(body_after_insert(BodyType::jsonb, "body::text") ==
        R"({"e": [], "n": 12345678901234567890.10, "u": "é"})");
}

TEST_CASE("body_bytes is the length of what goes out, whatever bytea_output says") {
  CHECK(body_after_insert(BodyType::json, "body_bytes") == std::to_string(exact_json.size()));
  CHECK(body_after_insert(BodyType::text, "body_bytes") == std::to_string(exact_json.size()));
  CHECK(body_after_insert(BodyType::jsonb, "body_bytes = octet_length(body::text)") == "t");
  OutboxDatabase outbox({.table = {"public", "outbox_msg"}, .body_type = BodyType::bytea, .days_ahead = 0});
  ask(outbox.sql(), "SET bytea_output = 'escape'");
  ask(outbox.sql(),
      R"(INSERT INTO outbox_msg (topic, body) VALUES ('t', '\x00ff01'), ('t', ''), ('t', NULL))");
  CHECK(ask(outbox.sql(), "SELECT body_bytes FROM outbox_msg ORDER BY id") == "3 0 null");
}

TEST_CASE("what the relay could not send, or could not file, is refused at the insert") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  const auto insert = [&](const std::string& columns, const std::string& values) {
    return refusal(sql, "INSERT INTO outbox_msg (topic, " + columns + ") VALUES ('t', " + values + ")");
  };
  CHECK(refusal(sql, "INSERT INTO outbox_msg (topic) VALUES ('')") == "23514");
  CHECK(refusal(sql, "INSERT INTO outbox_msg (topic) VALUES (repeat('t', 250))") == "23514");
  CHECK(refusal(sql, "INSERT INTO outbox_msg (topic) VALUES (NULL)") == "23502");
  CHECK(insert("status", "'pending'") == "23514");
  CHECK(insert("msg_key", "repeat('k', 2049)") == "23514");
  CHECK(insert("available_at", "'infinity'") == "23514");
  CHECK(insert("created_at", "'-infinity'") == "23514");
  for (const std::string time : {"10000-01-01 00:00:00+00", "294276-12-31", "0001-12-31 23:59:59+00 BC"}) {
    CAPTURE(time);
    CHECK(insert("created_at", "'" + time + "'") == "23514");
    CHECK(insert("available_at", "'" + time + "'") == "23514");
  }
  CHECK(insert("created_at", "'9999-12-31 23:59:59.999999+00'") == "accepted");
  CHECK(insert("created_at", "'0001-01-01 00:00:00+00'") == "accepted");
  CHECK(insert("body", "'{'") == "22P02");
  for (const std::string headers :
       {"[]", "1", "null", R"("a")", R"({"a":1})", R"({"a":null})", R"({"a":["b"]})", R"({"a":{}})",
        R"({"x":"y","a":true})", R"([{"a":"b"}])"}) {
    CAPTURE(headers);
    CHECK(insert("headers", "'" + headers + "'") == "23514");
  }
}

TEST_CASE("what is unusual and can be sent is taken") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  const auto insert = [&](const std::string& columns, const std::string& values) {
    return refusal(
        sql, "INSERT INTO outbox_msg (topic, " + columns + ") VALUES (repeat('t', 249), " + values + ")");
  };
  CHECK(insert("msg_key, body", "'', ''::text::json") == "22P02");  // an empty body is no JSON
  CHECK(insert("msg_key, body", "'', NULL") == "accepted");
  CHECK(insert("msg_key", "E'\\x01\\x1f é ' || repeat('k', 1000)") == "accepted");
  CHECK(insert("headers",
               R"('{"a":"b","":"","é":"\u0001", "outbox-id":"the relay refuses this one at the row"}')") ==
        "accepted");
  CHECK(insert("headers", "jsonb_build_object('long', repeat('h', 1024))") == "accepted");
  CHECK(insert("msg_id", "gen_random_uuid()") == "accepted");
}

TEST_CASE("a row with the longest topic and key can still be held and buried") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  const std::string random_text = "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 64) n)";
  ask(sql,
      "INSERT INTO outbox_msg (topic, msg_key) VALUES (left(" + random_text + ", 249), " + random_text + ")");
  CHECK(refusal(sql, "UPDATE outbox_msg SET status = 'HELD'") == "accepted");
  CHECK(refusal(sql,
                "INSERT INTO outbox_hold (source, scope, topic, msg_key) "
                "SELECT repeat('s', 127), 'key', topic, msg_key FROM outbox_msg") == "accepted");
}

TEST_CASE("outbox_publish inserts one row and returns its id, with INSERT alone") {
  OutboxDatabase outbox;
  auto& sql = outbox.with_roles().sql();
  auto app = outbox.as("outbox_app");
  const std::string id =
      ask(app, R"(SELECT outbox_publish('t', 'k', '{"a":1}', '{"h":"v"}', '2030-01-01Z'))");
  CHECK(ask(sql,
            "SELECT msg_id, topic, msg_key, body, headers, available_at = '2030-01-01Z' FROM outbox_msg") ==
        id + R"(|t|k|{"a":1}|{"h": "v"}|t)");
  ask(app, "SELECT outbox_publish('t', NULL, NULL)");
  CHECK(ask(sql, "SELECT msg_key, body, headers, available_at FROM outbox_msg WHERE id = 2") ==
        "null|null|{}|null");
}

}  // namespace outbox
