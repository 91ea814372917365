// Each role can do its work, and nothing that it must not.

#include <doctest/doctest.h>

#include "sql_fixture.hpp"

namespace outbox {
namespace {

using test::ask;
using test::OutboxDatabase;
using test::refusal;

constexpr std::string_view denied = "42501";

void check_denied(pg::Session& session, std::initializer_list<std::string> statements) {
  for (const auto& sql : statements) {
    CAPTURE(sql);
    CHECK(refusal(session, sql) == denied);
  }
}
void check_allowed(pg::Session& session, std::initializer_list<std::string> statements) {
  for (const auto& sql : statements) {
    CAPTURE(sql);
    CHECK(refusal(session, sql) == "accepted");
  }
}
std::string any_partition(OutboxDatabase& outbox) {
  return ask(
      outbox.sql(),
      "SELECT min(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'outbox_msg'::regclass");
}

}  // namespace

TEST_CASE("an application may insert, publish and cancel, and neither read nor change a row") {
  OutboxDatabase outbox({.table = {"app_schema", "outbox_msg"}});
  auto app = outbox.with_roles().as("outbox_app");
  ask(app, "SET search_path = app_schema");
  check_allowed(
      app,
      {"INSERT INTO outbox_msg (topic, body) VALUES ('t', '1')",
       "INSERT INTO outbox_msg (msg_id, topic, msg_key, body, headers, status, available_at, created_at) "
       "VALUES (gen_random_uuid(), 't', 'k', '1', '{}', 'PENDING', now(), now())",
       "SELECT outbox_publish('t', 'k', '1')", "SELECT outbox_cancel(gen_random_uuid())"});
  check_denied(
      app, {"SELECT 1 FROM outbox_msg", "UPDATE outbox_msg SET status = 'SENT'", "DELETE FROM outbox_msg",
            "INSERT INTO outbox_msg (topic, id) OVERRIDING SYSTEM VALUE VALUES ('t', 1)",
            "INSERT INTO outbox_msg (topic, kafka_offset) VALUES ('t', 1)", "TRUNCATE outbox_msg",
            "SELECT outbox_release('app_schema.outbox_msg', 'topic', 't')", "SELECT outbox_dead_retry(1)",
            "SELECT outbox_dead_end(1, 'SENT', '')", "SELECT outbox_dead_discard(1, '')",
            "SELECT outbox_ensure_partitions(1)", "SELECT 1 FROM outbox_lease", "SELECT 1 FROM outbox_hold",
            "SELECT outbox_lanes_keep('s', 'a', 1, '1 s')",
            "SELECT outbox_lanes_give('s', 'a', '{0}', '{1}', false)", "SELECT 1 FROM outbox_instance",
            "SELECT 1 FROM processed_msgs", "SELECT outbox_wake()"});
}

TEST_CASE("the relay may do what it does, on partitions too, and neither insert nor change what is created") {
  OutboxDatabase outbox;
  auto relay = outbox.with_roles().session("outbox_relay");
  check_allowed(
      relay,
      {"SELECT * FROM outbox_msg FOR KEY SHARE", "UPDATE outbox_msg SET status = 'SENT'",
       "DELETE FROM outbox_msg", "SELECT setval('outbox_asleep', 1)", "UPDATE outbox_lease SET owner = NULL",
       "SELECT outbox_lanes_keep('s', 'a', 2, '1 s')",
       "SELECT outbox_lanes_give('s', 'a', '{0}', '{1}', true)",
       "INSERT INTO outbox_hold (source, scope, topic) VALUES ('public.outbox_msg', 'topic', 't')",
       "SELECT 1 FROM outbox_hold FOR SHARE", "SELECT outbox_release('public.outbox_msg', 'topic', 't')",
       ("INSERT INTO outbox_topic (source, topic, partitions) VALUES ('s', 't', 3) "
        "ON CONFLICT (source, topic) DO UPDATE SET partitions = excluded.partitions"),
       "SELECT outbox_ensure_partitions(20)", "SELECT pg_logical_emit_message(true, 'outboxd', '')",
       "SELECT 1 FROM outbox_migration"});
  for (const auto& partition : {any_partition(outbox), std::string("outbox_msg_default"),
                                ask(outbox.sql(),
                                    "SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = "
                                    "'outbox_msg'::regclass")}) {
    check_allowed(relay, {"UPDATE " + partition + " SET status = 'SENT'", "DELETE FROM " + partition});
  }
  check_denied(relay, {"INSERT INTO outbox_msg (topic) VALUES ('t')", "TRUNCATE outbox_msg",
                       "SELECT outbox_dead_retry(1)", "SELECT outbox_dead_discard(1, '')",
                       "SELECT 1 FROM processed_msgs", "SELECT 1 FROM dead_msgs",
                       "INSERT INTO outbox_migration VALUES ('outbox', 9, '', '')",
                       "SELECT outbox_make_partition('outbox_msg', 'outbox_msg_default', '2030-01-01', '')"});
}

TEST_CASE("the relay's sessions come with the planner settings it needs") {
  OutboxDatabase outbox;
  auto relay = outbox.with_roles().session("outbox_relay");
  CHECK(ask(relay,
            "SELECT string_agg(setting, ' ' ORDER BY name) FROM pg_settings WHERE name IN "
            "('enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'jit')") == "off off off off");
}

TEST_CASE("a consumer may record what it did and can't touch the outbox without being an application too") {
  OutboxDatabase outbox;
  auto consumer = outbox.with_roles().as("outbox_consumer");
  check_allowed(consumer,
                {("INSERT INTO processed_msgs (consumer, msg_id, id_time, payload_sha256, topic, partition, "
                  "\"offset\") "
                  "VALUES ('c', '017f22e2-79b0-4cc3-98c4-dc0c0c07398f', '-infinity', sha256('x'), 't', 0, 1) "
                  "ON CONFLICT DO NOTHING"),
                 "UPDATE processed_msgs SET state = 'dead'", "SELECT * FROM processed_msgs",
                 ("INSERT INTO dead_msgs (consumer, topic, partition, \"offset\", verdict) VALUES ('c', 't', "
                  "0, 1, 'v') "
                  "ON CONFLICT DO NOTHING"),
                 "UPDATE dead_msgs SET attempts = 2", "SELECT outbox_ensure_partitions(7)"});
  check_denied(consumer, {"DELETE FROM processed_msgs", "DELETE FROM dead_msgs",
                          "INSERT INTO outbox_msg (topic) VALUES ('t')", "SELECT 1 FROM outbox_msg",
                          "SELECT 1 FROM outbox_lease"});
}

TEST_CASE("an operator reads everything and changes rows through functions only") {
  OutboxDatabase outbox;
  auto person = outbox.with_roles().as("outbox_operator");
  check_allowed(
      person,
      {"SELECT * FROM outbox_msg", "SELECT * FROM dead_msgs", "SELECT * FROM processed_msgs",
       "SELECT outbox_dead_retry(1)", "SELECT outbox_dead_discard(1, 'r')",
       "SELECT outbox_cancel(gen_random_uuid())", "SELECT outbox_release('public.outbox_msg', 'topic', 't')",
       "SELECT outbox_pause('pipeline', NULL, NULL, 'r', 'p')",
       "SELECT outbox_resume('pipeline', NULL, NULL, 'r', 'p')",
       "SELECT outbox_operation_begin('replay', '{}', 'r', 'p')",
       "SELECT outbox_replay((SELECT max(id) FROM outbox_operation), 0, NULL, 't', NULL, NULL, NULL, 9)",
       "SELECT outbox_operation_begin('purge', '{}', 'r', 'p')",
       "SELECT outbox_purge((SELECT max(id) FROM outbox_operation), 0, 'SENT', now(), NULL, 9)",
       "SELECT * FROM outbox_operation", "UPDATE dead_msgs SET resolved_at = now(), resolution = 'x'"});
  check_denied(person, {"UPDATE outbox_msg SET status = 'SENT'", "DELETE FROM outbox_msg",
                        "INSERT INTO outbox_msg (topic) VALUES ('t')", "UPDATE dead_msgs SET body = NULL",
                        "DELETE FROM outbox_hold", "UPDATE outbox_lease SET epoch = 0",
                        "SELECT setval('outbox_asleep', 1)", "SELECT outbox_dead_end(1, 'SENT', '')",
                        "DELETE FROM outbox_operation", "UPDATE outbox_operation SET person = ''",
                        "SELECT outbox_operation_step(1, 'purge', 1)"});
}

TEST_CASE("a dashboard sees counts and times, and never a key, a payload or a header") {
  OutboxDatabase outbox;
  auto monitor = outbox.with_roles().as("outbox_monitor");
  check_allowed(
      monitor,
      {"SELECT status, count(*), min(created_at), sum(body_bytes) FROM outbox_msg GROUP BY status",
       "SELECT source, scope, topic, cause, since FROM outbox_hold", "SELECT * FROM outbox_lease",
       "SELECT * FROM outbox_instance", "SELECT consumer, verdict, count(*) FROM dead_msgs GROUP BY 1, 2",
       "SELECT set, number FROM outbox_migration"});
  check_denied(
      monitor,
      {"SELECT body FROM outbox_msg", "SELECT msg_key FROM outbox_msg", "SELECT headers FROM outbox_msg",
       "SELECT payload_sha256 FROM processed_msgs", "SELECT last_error FROM outbox_msg",
       "SELECT msg_key FROM outbox_hold", "SELECT body FROM dead_msgs",
       "SELECT body FROM " + any_partition(outbox), "UPDATE outbox_msg SET status = 'SENT'",
       "SELECT outbox_release('public.outbox_msg', 'topic', 't')",
       "SELECT outbox_pause('pipeline', NULL, NULL, '', '')", "SELECT reason FROM outbox_operation"});
}

TEST_CASE("an operation is its beginner's, of its own action, and purges only what is settled") {
  OutboxDatabase outbox;
  outbox.with_roles();
  auto owner = outbox.session();
  ask(owner, "SELECT outbox_operation_begin('replay', '{}', 'r', 'p')");
  CHECK(refusal(owner, "SELECT outbox_purge(1, 0, 'SENT', now(), NULL, 9)") == "22023");
  CHECK(refusal(owner, "SELECT outbox_replay(2, 0, NULL, 't', NULL, NULL, NULL, 9)") == "22023");
  CHECK(refusal(owner, "SELECT outbox_replay(1, 0, NULL, 't', NULL, NULL, NULL, 9)") == "accepted");
  auto relay = outbox.session("outbox_relay");
  CHECK(refusal(relay, "SELECT outbox_replay(1, 0, NULL, 't', NULL, NULL, NULL, 9)") == "22023");
  ask(owner, "SELECT outbox_operation_begin('purge', '{}', 'r', 'p')");
  for (const char* status : {"PENDING", "HELD", "DEAD"})
    CHECK(refusal(owner, "SELECT outbox_purge(2, 0, '" + std::string{status} + "', now(), NULL, 9)") ==
          "22023");
  CHECK(refusal(owner, "SELECT outbox_purge(2, 0, 'SENT', now() + interval '1 h', NULL, 9)") == "22023");
}

// Laws over everything that the schema holds, so that what is added later is judged, too.
TEST_CASE(
    "nobody but the five roles may do anything, and what runs with the owner's rights is closed to all "
    "others") {
  OutboxDatabase outbox({.table = {"app_schema", "outbox_msg"}});
  outbox.with_roles();
  auto& sql = outbox.sql();
  CHECK(ask(sql,
            "SELECT oid::regclass FROM pg_class, aclexplode(relacl) a WHERE relnamespace = "
            "'app_schema'::regnamespace AND a.grantee = 0") == "");
  CHECK(ask(sql,
            "SELECT attrelid::regclass FROM pg_attribute JOIN pg_class c ON c.oid = attrelid, "
            "aclexplode(attacl) a WHERE relnamespace = 'app_schema'::regnamespace AND a.grantee = 0") == "");
  // No acl at all is PostgreSQL's default, by which PUBLIC may execute.
  CHECK(ask(sql,
            "SELECT p.oid::regprocedure FROM pg_proc p WHERE pronamespace = 'app_schema'::regnamespace AND "
            "prosecdef AND prorettype <> 'trigger'::regtype AND has_function_privilege('public', p.oid, "
            "'EXECUTE')") == "");
  CHECK(ask(sql,
            "SELECT p.oid::regprocedure FROM pg_proc p WHERE pronamespace = 'app_schema'::regnamespace AND "
            "prosecdef AND NOT coalesce(array_to_string(proconfig, ',') LIKE '%search_path=%', false)") ==
        "");
  CHECK(std::stoi(ask(sql,
                      "SELECT count(*) FROM pg_proc WHERE pronamespace = 'app_schema'::regnamespace AND "
                      "prosecdef")) >= 5);
}

TEST_CASE("by role: which tables may be written at all, and what a dashboard may never read") {
  OutboxDatabase outbox({.table = {"app_schema", "outbox_msg"}});
  outbox.with_roles();
  // Partitions have the rights of their table, which the tests above try.
  const auto writes = [&](const std::string& role) {
    return ask(
        outbox.sql(),
        "SELECT c.relname || ':' || string_agg(right_, '+' ORDER BY right_) FROM pg_class c, unnest(ARRAY["
        "'DELETE', 'INSERT', 'TRUNCATE', 'UPDATE']) right_ WHERE c.relnamespace = "
        "'app_schema'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND "
        "(has_table_privilege($1, c.oid, right_) OR right_ IN ('INSERT', 'UPDATE') AND "
        "has_any_column_privilege($1, c.oid, right_)) GROUP BY c.relname ORDER BY c.relname",
        pg::Params{}.text(role));
  };
  CHECK(writes("outbox_app") == "outbox_msg:INSERT");
  CHECK(writes("outbox_relay") ==
        "outbox_hold:DELETE+INSERT+UPDATE outbox_instance:DELETE+INSERT+UPDATE "
        "outbox_lease:DELETE+INSERT+UPDATE outbox_ledger:DELETE+INSERT "
        "outbox_msg:DELETE+UPDATE outbox_released:UPDATE outbox_topic:INSERT+UPDATE");
  CHECK(writes("outbox_consumer") ==
        "dead_msgs:INSERT+UPDATE inbox_consumer:INSERT+UPDATE inbox_offset:INSERT+UPDATE "
        "inbox_parked_key:DELETE+INSERT+UPDATE "
        "inbox_seq:INSERT+UPDATE inbox_version:INSERT+UPDATE processed_msgs:INSERT+UPDATE");
  CHECK(writes("outbox_operator") == "dead_msgs:UPDATE");
  CHECK(writes("outbox_monitor") == "");
  CHECK(ask(outbox.sql(),
            "SELECT c.relname || '.' || attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE "
            "relnamespace = 'app_schema'::regnamespace AND relkind IN ('r', 'p') AND attnum > 0 AND "
            "attname ~ '(body|key|header|payload|last_error|reason|entity)' AND attname NOT IN "
            "('body_bytes') AND "
            "has_column_privilege('outbox_monitor', c.oid, attnum, 'SELECT')") == "");
}

TEST_CASE("the grants may be applied again") {
  OutboxDatabase outbox;
  outbox.with_roles().with_roles();
  CHECK(refusal(outbox.sql(), "SELECT 1") == "accepted");
}

}  // namespace outbox
