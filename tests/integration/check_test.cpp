// `outboxd check` on a database and a cluster that have one fault each: forty-one that people really make.

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <functional>

#include "cli.hpp"
#include "sql_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/kafka.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

struct Checked {
  int code = 0;
  nlohmann::json findings;

  [[nodiscard]] nlohmann::json of(const std::string& check) const {
    for (const auto& f : findings)
      if (f["check"] == check) return f;
    return {{"severity", "none"}, {"found", ""}, {"advice", ""}};
  }
  [[nodiscard]] std::string severity(const std::string& check) const { return of(check)["severity"]; }
};

struct Place {
  std::string uri{};
  std::string kafka = KafkaCluster::shared().bootstrap();
  std::string source = "mode: notify";
  std::string top = "admin: { listen: 'off' }\n";
  std::string topics = "{}";
  std::string properties{};  // more of `kafka:`, each ", name: value"
  std::string pipeline{};    // more lines of the pipeline, each "    name: …\n"
};

std::string yaml_of(const Place& place) {
  return place.top + "pipelines:\n  - name: payments\n    postgres: { uri: \"" + place.uri +
         "\" }\n    source: { " + place.source + " }\n    topics: " + place.topics + "\n" + place.pipeline +
         "    kafka: { bootstrap.servers: \"" + place.kafka + "\"" + place.properties + " }\n";
}

// The pipeline's lines for a ledger of that name.
std::string exactly_once(const std::string& ledger) {
  return "    delivery: exactly_once\n    ledger: { topic: " + ledger + " }\n";
}

Checked checked(const CliFolder& folder, std::vector<std::string> more = {}) {
  std::vector<std::string> args{"check", "--json"};
  args.insert(args.end(), more.begin(), more.end());
  const auto done = folder.outboxd(args);
  INFO(done.errors);
  REQUIRE(done.output.starts_with("{"));
  return {done.status.code, nlohmann::json::parse(done.output)["findings"]};
}

Checked checked(const Place& place, std::vector<std::string> more = {}) {
  return checked(CliFolder(yaml_of(place)), std::move(more));
}

// A database as it should be, seen as the relay's role, in which `seed` breaks one thing.
Checked seeded(const std::string& seed, Place place = {}, std::vector<std::string> more = {}) {
  OutboxDatabase database;
  database.with_roles();
  if (!seed.empty()) must(database.sql().exec_script(seed));
  if (place.uri.empty())
    place.uri =
        with_database(database.uri(), ask(database.sql(), "SELECT current_database()"), "outbox_relay");
  return checked(place, std::move(more));
}

// The check's severity, and that whoever reads it is told what to do.
void finds(const Checked& result, const std::string& check, const std::string& severity) {
  CAPTURE(check);
  CAPTURE(result.findings.dump(1));
  CHECK(result.severity(check) == severity);
  CHECK_FALSE(result.of(check)["found"].get<std::string>().empty());
  if (severity == "error" || severity == "warning")
    CHECK_FALSE(result.of(check)["advice"].get<std::string>().empty());
}

std::string insert(const std::string& topic, const std::string& body = "'1'") {
  return "INSERT INTO outbox_msg (topic, body) VALUES ('" + topic + "', " + body + ")";
}

// A topic of the shared cluster with these settings, for which a row waits; nothing where the cluster is a
// mock.
void finds_of_topic(const KafkaCluster::Configs& configs, const std::string& check,
                    const std::string& severity, const std::string& body = "'1'") {
  auto& kafka = KafkaCluster::shared();
  if (!kafka.real()) {
    MESSAGE("SKIPPED: a mock cluster has no topic settings");
    return;
  }
  finds(seeded(insert(kafka.new_topic("sick", 1, configs), body)), check, severity);
}

}  // namespace

TEST_CASE(
    "check: without a fault there is neither error nor warning about database and table, in words too") {
  // The shared one may run without fsync, and full pages are off by default here: both are findings.
  const PostgresServer server({.settings = {{"fsync", "on"}, {"full_page_writes", "on"}}});
  OutboxDatabase database({}, server.uri());
  database.with_roles();
  const std::string uri =
      with_database(database.uri(), ask(database.sql(), "SELECT current_database()"), "outbox_relay");
  const CliFolder folder(yaml_of({.uri = uri}));
  const auto result = checked(folder);
  for (const auto& f : result.findings) {
    CAPTURE(f.dump());
    const std::string severity = f["severity"];
    CHECK((severity == "ok" || severity == "note"));
  }
  CHECK(result.code == 0);
  const auto text = folder.outboxd({"check"});
  CHECK(text.output.starts_with("payments\n  note     "));
  CHECK(text.status.code == 0);
}

TEST_CASE("check finds 1: PostgreSQL that does not answer, status 3") {
  const auto result = checked(Place{.uri = "postgresql://u@127.0.0.1:9/d"});
  finds(result, "postgres.reachable", "away");
  CHECK(result.code == 3);
}

TEST_CASE("check finds 2: a database that is not there, status 4") {
  const auto result = checked(Place{.uri = with_database(shared_postgres(), "no_such_database")});
  finds(result, "postgres.reachable", "error");
  CHECK(result.code == 4);
}

TEST_CASE("check finds 3: a database that was never migrated") {
  const TestDatabase empty;
  finds(checked(Place{.uri = empty.uri()}), "table.fit", "error");
}

TEST_CASE("check finds 4: a right that the relay lacks") {
  const auto result = seeded("REVOKE UPDATE ON outbox_msg FROM outbox_relay");
  finds(result, "table.fit", "error");
  CHECK(result.code == 4);
}

TEST_CASE("check finds 5: a migration that is missing") {
  finds(seeded("DELETE FROM outbox_migration WHERE set = 'outbox' AND number = 4"), "table.migration",
        "error");
}

TEST_CASE("check finds 6: a database newer than the program") {
  finds(
      seeded(
          "INSERT INTO outbox_migration (set, number, name, checksum) VALUES ('outbox', 9999, 'later', 'x')"),
      "table.migration", "error");
}

TEST_CASE("check finds 7: a sequence that hands ids out in bundles") {
  finds(seeded("ALTER TABLE outbox_msg ALTER COLUMN id SET CACHE 50"), "table.sequence_cache", "error");
}

TEST_CASE("check finds 8: an index that somebody dropped") {
  const auto result = seeded(R"(DO $$ DECLARE i regclass; BEGIN
      SELECT indexrelid INTO i FROM pg_index WHERE indrelid = 'outbox_msg'::regclass AND indpred IS NOT NULL
         AND pg_get_indexdef(indexrelid) LIKE '%(shard, id)%';
      EXECUTE format('DROP INDEX %s', i); END $$)");
  finds(result, "table.indexes", "error");
  CHECK(result.of("table.indexes")["found"].get<std::string>().find("(shard,id)") != std::string::npos);
}

TEST_CASE("check finds 9: notify mode without its trigger, and not in poll mode") {
  const std::string seed = "ALTER TABLE outbox_msg DISABLE TRIGGER outbox_wake";
  finds(seeded(seed), "table.wake_trigger", "warning");
  finds(seeded(seed, {.source = "mode: poll"}), "table.wake_trigger", "ok");
}

TEST_CASE("check finds 10: partitions that nobody made") {
  const auto result = seeded(R"(DO $$ DECLARE p regclass; BEGIN
      FOR p IN SELECT i.inhrelid FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
               WHERE i.inhparent = 'outbox_msg'::regclass AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
      LOOP EXECUTE format('DROP TABLE %s', p); END LOOP;
      WHILE outbox_ensure_partitions(0) > 0 LOOP END LOOP; END $$)");
  finds(result, "table.partitions_ahead", "warning");
}

TEST_CASE("check finds 11: rows in the DEFAULT partition") {
  finds(seeded("INSERT INTO outbox_msg (topic, body, created_at) SELECT 't', to_json(repeat(md5(i::text), "
               "40)), '2001-01-01' "
               "FROM generate_series(1, 2000) i"),
        "table.default_partition", "warning");
}

TEST_CASE("check finds 12: a partition whose autovacuum is off") {
  finds(seeded(R"(DO $$ DECLARE p regclass; BEGIN
      SELECT max(inhrelid::oid)::regclass INTO p FROM pg_inherits WHERE inhparent = 'outbox_msg'::regclass;
      EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', p); END $$)"),
        "table.autovacuum", "warning");
}

TEST_CASE("check finds 13: an owner that deals another number of lanes") {
  finds(
      seeded(
          "INSERT INTO outbox_lease (source, lane, lanes, generation, owner, epoch, lease_until, renewed_at) "
          "VALUES ('public.outbox_msg', 0, 16, 1, 'other', 1, now() + interval '1 hour', now())"),
      "table.lanes", "error");
}

TEST_CASE("check finds 14: dead messages that nobody looks after") {
  finds(
      seeded("INSERT INTO outbox_msg (topic, body) VALUES ('t', '1'); UPDATE outbox_msg SET status = 'DEAD'"),
      "table.dead", "warning");
}

TEST_CASE("check finds 15: a transaction that is open for too long") {
  OutboxDatabase database;
  pg::Session forgotten = database.session();
  must(forgotten.exec_script("BEGIN; CREATE TABLE left_open ()"));
  finds(checked(Place{.uri = database.uri()}, {"--old-transaction", "0"}), "postgres.old_transaction",
        "warning");
}

TEST_CASE("check finds 16: a role that may only read") {
  OutboxDatabase database;
  must(
      database.sql().exec_script("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET "
                                 "default_transaction_read_only = on', current_database()); END $$"));
  const auto result = checked(Place{.uri = database.uri()});
  finds(result, "postgres.writable", "error");
}

TEST_CASE("check finds 17: commits that do not wait for the disk") {
  OutboxDatabase database;
  must(
      database.sql().exec_script("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = "
                                 "off', current_database()); END $$"));
  finds(checked(Place{.uri = database.uri()}), "postgres.synchronous_commit", "warning");
}

TEST_CASE("check finds 18: a statement_timeout that cuts the relay's statements short") {
  OutboxDatabase database;
  must(
      database.sql().exec_script("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = "
                                 "500', current_database()); END $$"));
  finds(checked(Place{.uri = database.uri()}), "postgres.statement_timeout", "warning");
}

TEST_CASE("check finds 19: a superuser in the relay's place") {
  const OutboxDatabase database;
  finds(checked(Place{.uri = database.uri()}), "postgres.role", "warning");
}

TEST_CASE("check finds 20: Kafka that does not answer, status 3, and still what is wrong with the database") {
  const auto result = seeded("ALTER TABLE outbox_msg DISABLE TRIGGER outbox_wake", {.kafka = "127.0.0.1:9"});
  finds(result, "kafka.reachable", "away");
  finds(result, "table.wake_trigger", "warning");
  CHECK(result.code == 3);
}

TEST_CASE("check finds 21: a topic that rows wait for and that is not there") {
  finds(seeded(insert("no.such.topic")), "kafka.topic", "error");
}

TEST_CASE("check finds 22: a topic of one replica") {
  finds_of_topic({}, "kafka.replicas", "warning");
}

TEST_CASE("check finds 23: a row larger than its topic takes") {
  finds_of_topic({{"max.message.bytes", "20000"}}, "kafka.message_bytes", "error",
                 "to_json(repeat('x', 30000))");
}

TEST_CASE("check finds 24: a topic that forgets within the hour") {
  finds_of_topic({{"retention.ms", "3600000"}}, "kafka.retention", "warning");
}

TEST_CASE("check finds 25: a compacted topic") {
  finds_of_topic({{"cleanup.policy", "compact"}}, "kafka.compaction", "warning");
}

TEST_CASE("check finds 26: a topic that may elect a leader which lags") {
  finds_of_topic({{"unclean.leader.election.enable", "true"}}, "kafka.unclean_election", "warning");
}

TEST_CASE("check finds 27: a secret in a file that everybody can read") {
  const TestDatabase database;
  std::string uri = database.uri();
  uri.insert(uri.find('@'), ":hush-hush");
  const CliFolder folder(yaml_of({.uri = uri}));
  ::chmod(folder.file().c_str(), 0644);
  const auto result = checked(folder);
  finds(result, "config.file_mode", "warning");
  CHECK(result.findings.dump().find("hush-hush") == std::string::npos);
  ::chmod(folder.file().c_str(), 0600);
  finds(checked(folder), "config.file_mode", "ok");
}

TEST_CASE("check finds 28: an admin endpoint on all interfaces") {
  finds(checked(Place{.uri = "postgresql://u@127.0.0.1:9/d", .top = "admin: { listen: '0.0.0.0:9464' }\n"}),
        "config.admin_listen", "warning");
}

TEST_CASE("check finds 29: a replication slot that nobody reads") {
  const PostgresServer server;
  OutboxDatabase database({}, server.uri());
  ask(database.sql(), "SELECT pg_create_physical_replication_slot('forgotten', true)");
  const auto result = checked(Place{.uri = database.uri()});
  finds(result, "postgres.idle_slots", "warning");
  CHECK(result.of("postgres.idle_slots")["found"].get<std::string>().find("forgotten") != std::string::npos);
}

TEST_CASE("check finds 30: a server that writes too little WAL for a standby or a recovery") {
  const PostgresServer server({.settings = {{"wal_level", "minimal"}, {"max_wal_senders", "0"}}});
  const OutboxDatabase database({}, server.uri());
  finds(checked(Place{.uri = database.uri()}), "postgres.wal_level", "warning");
}

TEST_CASE("check finds 31: a topic that keeps messages for longer than a consumer remembers their ids") {
  auto& kafka = KafkaCluster::shared();
  if (!kafka.real()) {
    MESSAGE("SKIPPED: a mock cluster has no topic settings");
    return;
  }
  const std::string topic = kafka.new_topic("long", 1, {{"retention.ms", "604800000"}});
  finds(seeded(insert(topic) + "; SELECT inbox_register('ledger', '3 days')"), "kafka.dedup_horizon",
        "warning");
  CHECK(seeded(insert(topic) + "; SELECT inbox_register('ledger', '30 days')")
            .severity("kafka.dedup_horizon") == "none");
}

TEST_CASE("check finds 32: a synchronous standby that is away, so that every commit waits") {
  const PostgresServer server;
  OutboxDatabase database({}, server.uri());
  must(database.sql().exec("ALTER SYSTEM SET synchronous_standby_names = 'mirror'"));
  ask(database.sql(), "SELECT pg_reload_conf()");
  eventually("the server has read it",
             [&] { return ask(database.sql(), "SHOW synchronous_standby_names") == "mirror"; });
  const auto result = checked(Place{.uri = database.uri()});
  must(database.sql().exec("ALTER SYSTEM RESET synchronous_standby_names"));
  ask(database.sql(), "SELECT pg_reload_conf()");  // or dropping the database would wait for it
  finds(result, "postgres.replication", "error");
  CHECK(result.of("postgres.replication")["found"].get<std::string>().find("'mirror'") != std::string::npos);
  CHECK(result.code == 4);
}

TEST_CASE("check finds 33: rows for a topic that topics.allow leaves out") {
  finds(seeded(insert("orders"), {.topics = "{ allow: 'payment.*' }"}), "config.topics_allow", "warning");
}

TEST_CASE("check finds 34: a topic that is missing under the name that the relay gives it") {
  auto& kafka = KafkaCluster::shared();
  const std::string topic = kafka.new_topic("named", 1);
  CHECK(seeded(insert(topic)).severity("kafka.topic") == "none");
  const auto result = seeded(insert(topic), {.topics = "{ prefix: 'eu.' }"});
  finds(result, "kafka.topic", "error");
  CHECK(result.of("kafka.topic")["found"].get<std::string>().starts_with("topic eu." + topic + " (of " +
                                                                         topic + ")"));
}

TEST_CASE("check finds 37: a column for the row's partition that is of another type") {
  const Place place{.source = "partition_column: shelf"};
  const auto result = seeded("ALTER TABLE outbox_msg ADD COLUMN shelf bigint", place);
  finds(result, "table.fit", "error");
  CHECK(result.of("table.fit")["found"] ==
        "column \"shelf\" of \"public\".\"outbox_msg\", which source.partition_column names, is of type int8 "
        "(42804)");
  finds(seeded("ALTER TABLE outbox_msg ADD COLUMN shelf int", place), "table.fit", "ok");
}

TEST_CASE(
    "check finds 35, 36, 38 and 39: a topic that the relay may not see, one that it may not write, once the "
    "cluster tells, and a ledger likewise, or that it may not read") {
  KafkaCluster kafka(
      {.settings = {"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                    "super.users=User:ANONYMOUS"},
       .script_options = {"--tls-sasl", "--user", "outbox:hush-hush"}});
  if (!kafka.real()) {
    MESSAGE("SKIPPED: a mock cluster has no access control");
    return;
  }
  const std::string granted = kafka.new_topic("granted");
  const std::string refused = kafka.new_topic("refused");
  const auto grant = [&](std::vector<std::string> what) {
    what.insert(what.begin(), {"acls", "--add", "--allow-principal", "User:outbox"});
    kafka.run_tool(what);
  };
  const Place place{.kafka = kafka.secure_bootstrap(),
                    .properties =
                        ", security.protocol: sasl_ssl, sasl.mechanism: PLAIN, sasl.username: outbox, "
                        "sasl.password: hush-hush, ssl.ca.location: '" +
                        kafka.folder() + "/tls/ca.crt'"};
  const std::string waiting = insert(granted) + "; " + insert(refused);
  grant({"--operation", "Write", "--topic", granted});
  const auto hidden = seeded(waiting, place);
  finds(hidden, "kafka.topic", "error");
  finds(hidden, "kafka.access", "note");  // no DESCRIBE on the cluster
  CHECK(hidden.of("kafka.topic")["found"].get<std::string>().find(refused) != std::string::npos);
  grant({"--operation", "Describe", "--cluster", "--topic", refused});
  const auto told = seeded(waiting, place);
  finds(told, "kafka.access", "warning");
  CHECK(told.of("kafka.access")["found"] == "topic " + refused + ": no rule lets User:outbox write it");
  grant({"--operation", "Write", "--topic", "re", "--resource-pattern-type", "prefixed"});
  finds(seeded(waiting, place), "kafka.access", "ok");

  Place once = place;
  const std::string ledger = kafka.new_topic("ledger", 8, {{"cleanup.policy", "compact"}});
  once.pipeline = exactly_once(ledger);
  finds(seeded(waiting, once), "kafka.ledger", "error");
  grant({"--operation", "Write", "--operation", "DescribeConfigs", "--topic", ledger});
  const auto unread = seeded(waiting, once);
  finds(unread, "kafka.ledger", "warning");
  CHECK(unread.of("kafka.ledger")["found"] ==
        "ledger topic " + ledger + ": no rule lets User:outbox read it");
  grant({"--operation", "Read", "--topic", ledger});
  finds(seeded(waiting, once), "kafka.ledger", "ok");
}

TEST_CASE(
    "check finds 40: a ledger whose records Kafka would delete, as run refuses it, and not where it is "
    "unused") {
  auto& kafka = KafkaCluster::shared();
  if (!kafka.real()) {
    MESSAGE("SKIPPED: a mock cluster has no topic settings");
    return;
  }
  const std::string ledger = kafka.new_topic("ledger", 8, {{"cleanup.policy", "compact,delete"}});
  const auto result = seeded("", {.pipeline = exactly_once(ledger)});
  finds(result, "kafka.ledger", "error");
  CHECK(result.code == 4);
  CHECK(result.of("kafka.ledger")["advice"].get<std::string>().find("--topic " + ledger) !=
        std::string::npos);
  CHECK(seeded("", {.pipeline = "    ledger: { topic: " + ledger + " }\n"}).severity("kafka.ledger") ==
        "none");
}

TEST_CASE(
    "check finds 41: a ledger with fewer partitions than lanes, and says of one that is not there who makes "
    "it") {
  auto& kafka = KafkaCluster::shared();
  if (!kafka.real()) {
    MESSAGE("SKIPPED: a mock cluster has no topic settings");
    return;
  }
  const std::string ledger = kafka.new_topic("ledger", 4, {{"cleanup.policy", "compact"}});
  finds(seeded("", {.pipeline = exactly_once(ledger)}), "kafka.ledger", "warning");
  finds(seeded("", {.source = "mode: notify, lanes: 4", .pipeline = exactly_once(ledger)}), "kafka.ledger",
        "ok");
  const auto absent = seeded("", {.pipeline = exactly_once(KafkaCluster::unique_topic("ledger"))});
  finds(absent, "kafka.ledger", "note");
  CHECK(absent.of("kafka.ledger")["advice"].get<std::string>().find("cleanup.policy=compact") !=
        std::string::npos);
}

TEST_CASE(
    "check partition: where a key goes, as Kafka's own client would have it, over the pinned count first") {
  OutboxDatabase database;
  const std::string topic = KafkaCluster::shared().new_topic("where", 5);
  const CliFolder folder(yaml_of({.uri = database.uri()}));
  const auto fresh = folder.outboxd({"check", "partition", "21", topic, "--json"});
  REQUIRE_MESSAGE(fresh.status.code == 0, fresh.errors);
  CHECK(nlohmann::json::parse(fresh.output)["partitions"] == 5);
  CHECK(nlohmann::json::parse(fresh.output)["pinned"] == false);
  must(database.sql().exec(
      "INSERT INTO outbox_topic (source, topic, partitions) VALUES ('public.outbox_msg', $1, 1000)",
      pg::Params{}.text(topic)));
  const auto pinned = folder.outboxd({"check", "partition", "21", topic});
  CHECK(pinned.output == "payments: partition 340 of 1000 (pinned)\n");  // murmur2("21") = -973932308 in Java
  CHECK(folder.outboxd({"check", "partition", "21", "no.such.topic"}).status.code == 4);
}
