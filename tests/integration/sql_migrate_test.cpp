// The migrations and the engine that applies them.

#include <doctest/doctest.h>

#include <fstream>
#include <future>

#include "sql_fixture.hpp"
#include "tests/support/process.hpp"

namespace outbox {
namespace {

using relay::BodyType;
using relay::MigrateOptions;
using test::ask;
using test::must;
using test::OutboxDatabase;
using test::TestDatabase;

std::string failed_with(pg::Session& session, const MigrateOptions& options = {}) {
  const auto report = relay::migrate(session, options);
  return report ? "" : report.error().text();
}
int befores(const relay::MigrateReport& report) {
  int all = 0;
  for (const auto& set : report.sets) all += set.before;
  return all;
}
int afters(const relay::MigrateReport& report) {
  int all = 0;
  for (const auto& set : report.sets) all += set.after;
  return all;
}
// Everything that a schema has, in one text. $1: the schema, quoted.
constexpr auto shape =
    "SELECT string_agg(x, ' ' ORDER BY x) FROM ("
    "SELECT attrelid::regclass || '.' || attname || ' ' || format_type(atttypid, atttypmod) FROM "
    "pg_attribute "
    "JOIN pg_class c ON c.oid = attrelid WHERE relnamespace = to_regnamespace($1) AND attnum > 0 UNION ALL "
    "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = to_regnamespace($1)) s(x)";
bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a second migrate finds nothing to do") {
  const TestDatabase database;
  auto session = database.session();
  const auto first = must(relay::migrate(session, {}));
  CHECK(befores(first) == 0);
  CHECK(first.applied.size() == static_cast<std::size_t>(afters(first)));
  CHECK(first.partitions_made == 18);
  const auto second = must(relay::migrate(session, {}));
  CHECK(befores(second) == afters(first));
  CHECK(afters(second) == afters(first));
  CHECK(second.applied.empty());
  CHECK(second.partitions_made == 0);
}

TEST_CASE("of two that migrate at once each migration is applied by one") {
  for (int round = 0; round < 3; ++round) {
    const TestDatabase database;
    std::array<relay::MigrateReport, 3> reports;
    std::vector<std::future<void>> migrators;
    migrators.reserve(reports.size());
    for (auto& report : reports) {
      migrators.push_back(std::async(std::launch::async, [&] {
        auto session = database.session();
        report = must(relay::migrate(session, {}));
      }));
    }
    for (auto& migrator : migrators) migrator.get();
    std::size_t applied = 0;
    for (const auto& report : reports) {
      applied += report.applied.size();
      CHECK(afters(report) == afters(reports[0]));
    }
    CHECK(applied == static_cast<std::size_t>(afters(reports[0])));
  }
}

TEST_CASE("a migration recorded with another checksum stops, and says what to do") {
  OutboxDatabase outbox;
  ask(outbox.sql(), "UPDATE outbox_migration SET checksum = 'abc' WHERE set = 'outbox' AND number = 2");
  const std::string error = failed_with(outbox.sql());
  CHECK(contains(error, "migration 2 of outbox (lanes)"));
  CHECK(contains(error, "abc"));
  CHECK(contains(error, "--print"));
}

TEST_CASE(
    "a database newer than the program is refused, a set that it does not know is none of its business") {
  OutboxDatabase outbox;
  ask(outbox.sql(),
      "INSERT INTO outbox_migration (set, number, name, checksum) VALUES ('later', 1, 'future', '')");
  CHECK(failed_with(outbox.sql()) == "");
  ask(outbox.sql(),
      "INSERT INTO outbox_migration (set, number, name, checksum) VALUES ('outbox', 999, 'future', '')");
  CHECK(contains(failed_with(outbox.sql()), "migration 999 of outbox (future)"));
}

TEST_CASE("a migration that fails leaves nothing of itself, and the next try begins there") {
  const TestDatabase database;
  auto session = database.session();
  ask(session,
      "CREATE TABLE inbox_version (a int)");  // the first migration of the consumer's set wants this name
  CHECK(contains(failed_with(session), "42P07"));
  CHECK(ask(session,
            "SELECT max(number) FILTER (WHERE set = 'outbox'), max(number) FILTER (WHERE set = 'consumer'), "
            "to_regclass('processed_msgs') FROM outbox_migration") == "4|null|null");
  ask(session, "DROP TABLE inbox_version");
  CHECK(must(relay::migrate(session, {})).applied.front() == "consumer/processed");
}

TEST_CASE("a set is applied alone, and with others later, whatever was first") {
  const TestDatabase one;
  const TestDatabase other;
  auto a = one.session();
  auto b = other.session();
  must(relay::migrate(a, {.only = {"consumer"}}));
  CHECK(ask(a, "SELECT to_regclass('outbox_msg'), to_regclass('processed_msgs')") == "null|processed_msgs");
  CHECK(must(relay::migrate(a, {})).applied.front() == "outbox/outbox");
  must(relay::migrate(b, {.only = {"outbox"}}));
  CHECK(ask(b, "SELECT to_regclass('outbox_msg'), to_regclass('processed_msgs')") == "outbox_msg|null");
  CHECK(must(relay::migrate(b, {.only = {"consumer"}})).applied.front() == "consumer/processed");
  CHECK(ask(a, shape, pg::Params{}.text("public")) == ask(b, shape, pg::Params{}.text("public")));
}

TEST_CASE(
    "each set stands by itself: its functions use what it and the shared one have made, and its grants hold "
    "alone") {
  for (const char* set : {"outbox", "consumer"}) {
    CAPTURE(set);
    const TestDatabase database;
    auto session = database.session();
    const MigrateOptions options{.only = {set}};
    must(relay::migrate(session, options));
    must(relay::apply_grants(session, options));
    must(relay::apply_grants(session, options));
    // Every name of the schema that a function's text has, but for its own parameters and constraints, is
    // there.
    CHECK(ask(session,
              "SELECT DISTINCT p.proname || ': ' || m[1] FROM pg_proc p, "
              "regexp_matches(coalesce(p.prosrc, ''), '\"public\"\\.([a-z0-9_]+)', 'g') m "
              "WHERE p.pronamespace = 'public'::regnamespace AND to_regclass(m[1]) IS NULL AND NOT EXISTS "
              "(SELECT FROM pg_proc q WHERE q.pronamespace = p.pronamespace AND q.proname = m[1])") == "");
  }
}

TEST_CASE(
    "a set that is not made by default is made where it is asked for, by its folder and one row alone") {
  const TestDatabase database;
  auto session = database.session();
  auto sets = relay::migration_sets();
  sets.push_back(
      {.name = "invoices",
       .use = relay::SetUse::optional,
       .migrations =
           {{.number = 1,
             .name = "invoice",
             .checksum = "1",
             .text = "CREATE TABLE {{schema}}.invoice (day timestamptz) PARTITION BY RANGE (day);\n"
                     "CREATE TABLE {{schema}}.invoice_default PARTITION OF {{schema}}.invoice DEFAULT;\n"
                     "INSERT INTO {{schema}}.outbox_daily_table VALUES ('invoice', 'fillfactor = 90');"}},
       .grants = "SELECT {{schema}}.outbox_make_role('outbox_consumer');\n"
                 "GRANT SELECT ON {{schema}}.invoice TO outbox_consumer;"});
  must(relay::migrate(session, {.known = &sets}));
  CHECK(ask(session, "SELECT to_regclass('invoice')") == "null");
  const MigrateOptions with{.with = {"invoices"}, .known = &sets};
  const auto report = must(relay::migrate(session, with));
  CHECK(report.applied == std::vector<std::string>{"invoices/invoice"});
  CHECK(report.partitions_made == 9);
  must(relay::apply_grants(session, with));
  CHECK(ask(session, "SELECT has_table_privilege('outbox_consumer', 'invoice', 'SELECT')") == "t");
  CHECK(ask(session, "SELECT set, number FROM outbox_migration WHERE set = 'invoices'") == "invoices|1");
  CHECK(contains(must(relay::render(with)), "TABLE \"public\".invoice"));
  CHECK(contains(failed_with(session, {.with = {"bills"}, .known = &sets}),
                 "the sets are: outbox and consumer (unless --only names others), requests, invoices"));
}

TEST_CASE("another table or another body type in a migrated schema is refused") {
  OutboxDatabase outbox;
  CHECK(contains(failed_with(outbox.sql(), {.table = {"public", "other"}}),
                 "holds the outbox table 'outbox_msg'"));
  CHECK(contains(failed_with(outbox.sql(), {.table = {"public", "outbox_msg"}, .body_type = BodyType::text}),
                 "keeps bodies as json, not as text"));
  CHECK(failed_with(outbox.sql(), {.table = {"second", "other"}, .body_type = BodyType::text}) == "");
}

TEST_CASE("a role that may not create is refused, without a schema left behind") {
  const TestDatabase database;
  auto admin = database.session();
  ask(admin, "CREATE ROLE " + database.name() + "_app LOGIN");
  auto session = database.session(database.name() + "_app");
  CHECK(contains(failed_with(session, {.table = {"new_schema", "outbox_msg"}}), "42501"));
  CHECK(contains(failed_with(session), "42501"));
  CHECK(ask(admin, "SELECT to_regnamespace('new_schema'), to_regclass('outbox_migration')") == "null|null");
  ask(admin, "DROP ROLE " + database.name() + "_app");
}

TEST_CASE("what --print prints is what migrate does: by psql, and nothing is left to do") {
  const MigrateOptions options{.table = {"My \"Sch.ema\"", "Out.Box '1\\2'"}, .body_type = BodyType::text};
  OutboxDatabase migrated(options);
  const TestDatabase printed;
  const test::TemporaryDirectory folder;
  const auto file = folder.path() / "print.sql";
  std::ofstream(file) << must(relay::render(options));
  const auto psql =
      test::run_program("psql", {.args = {"-qX", "-v", "ON_ERROR_STOP=1", "-f", file, printed.uri()}});
  CHECK(psql.status == test::ExitStatus{0, 0});
  CHECK(psql.errors == "");

  auto session = printed.session();
  const auto report = must(relay::migrate(session, options));
  CHECK(report.applied.empty());
  CHECK(report.partitions_made == 0);
  const auto schema = pg::Params{}.text(options.table.quoted_schema());
  CHECK(ask(session, shape, schema) == ask(migrated.sql(), shape, schema));
}

TEST_CASE("names with upper case, quotes and dots work from end to end") {
  for (const auto& [schema, table] :
       {std::pair<std::string, std::string>{"My.Sch\"e'ma", "Out\"b.ox' {{table}} $$"},
        {"public", std::string(63, 'T')},
        {"é\\", "Ünïcode-" + std::string(50, 'x')}}) {
    CAPTURE(table);
    OutboxDatabase outbox({.table = {schema, table}, .days_ahead = 1});
    auto& sql = outbox.with_roles().sql();
    const std::string source = std::string(schema).append(".").append(table);
    ask(sql, "INSERT INTO " + outbox.table() +
                 " (topic, msg_key, body, status) VALUES ('t', 'k', '1', 'DEAD'), ('t', 'k', '2', 'HELD')");
    ask(sql,
        "INSERT INTO " + outbox.schema() +
            ".outbox_hold (source, scope, topic, msg_key, cause) VALUES ($1, 'key', 't', 'k', 'dead')",
        pg::Params{}.text(source));
    CHECK(ask(sql, "SELECT " + outbox.schema() + ".outbox_dead_retry(1)") == "t");
    CHECK(ask(sql, "SELECT status FROM " + outbox.table()) == "PENDING PENDING");
    CHECK(ask(sql, "SELECT count(*) FROM " + outbox.schema() + ".outbox_hold") == "0");
    CHECK(ask(sql, "SELECT " + outbox.schema() + ".outbox_release($1, 'topic', 't')",
              pg::Params{}.text(source)) == "0");
    const std::string id = ask(
        sql, "SELECT " + outbox.schema() + ".outbox_publish('t', 'k', '1', available_at => now() + '1 day')");
    CHECK(ask(sql, "SELECT " + outbox.schema() + ".outbox_cancel($1)", pg::Params{}.untyped(id)) ==
          "cancelled");
    CHECK(ask(sql, "SELECT " + outbox.schema() + ".outbox_ensure_partitions(3)") == "1");
    CHECK(ask(sql, "SELECT count(*) FROM " + outbox.schema() + ".outbox_lanes_keep($1, 'me', 4, '1 s')",
              pg::Params{}.text(source)) == "4");
  }
}

TEST_CASE("a name that would end a function's body is refused before anything runs") {
  const TestDatabase database;
  auto session = database.session();
  CHECK(contains(failed_with(session, {.table = {"public", "a$outbox$b"}}), "must not contain"));
  CHECK(ask(session, "SELECT to_regclass('outbox_migration')") == "null");
}

TEST_CASE("a database of another encoding is refused by name, and nothing is made in it") {
  const TestDatabase base;
  auto admin = base.session();
  const std::string name = ask(admin, "SELECT current_database() || '_latin1'");
  must(admin.exec("CREATE DATABASE " + name + " TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'"));
  {
    const std::string uri = base.uri();
    const auto at = uri.find(ask(admin, "SELECT current_database()"));
    REQUIRE(at != std::string::npos);
    auto session = must(pg::Session::connect(
        {.uri = std::string(uri).replace(at, name.size() - std::string_view("_latin1").size(), name)}));
    const auto refused = relay::migrate(session, {});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().text().find("is LATIN1: it must be UTF8") != std::string::npos);
    CHECK(ask(session, "SELECT count(*) FROM pg_class WHERE relname LIKE 'outbox%'") == "0");
  }
  must(admin.exec("DROP DATABASE " + name + " WITH (FORCE)"));
}

TEST_CASE("settings of how names are displayed change nothing") {
  const TestDatabase database;
  auto session = database.session();
  must(session.exec("SET quote_all_identifiers = on"));
  must(relay::migrate(session, {}));
  CHECK(must(relay::migrate(session, {})).applied.empty());
}

TEST_CASE("the body type's name is read as it is written") {
  for (const auto type : {BodyType::json, BodyType::jsonb, BodyType::text, BodyType::bytea}) {
    CHECK(relay::parse_body_type(to_string(type)) == type);
  }
  CHECK_FALSE(relay::parse_body_type("JSON").has_value());
}

}  // namespace outbox
