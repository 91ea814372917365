#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

#include "cli.hpp"
#include "pg/identifier.hpp"
#include "relay/commands/status/status.hpp"
#include "sql/queries/operator.hpp"
#include "tests/support/postgres.hpp"

using namespace outbox::test;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Finished migrate(const CliFolder& folder, const TestDatabase& database, std::vector<std::string> more = {}) {
  std::vector<std::string> args{"migrate", "--uri", database.uri()};
  args.insert(args.end(), more.begin(), more.end());
  return folder.outboxd(args);
}

nlohmann::json status_json(const CliFolder& folder, std::vector<std::string> more = {}) {
  std::vector<std::string> args{"status", "--json"};
  args.insert(args.end(), more.begin(), more.end());
  const auto done = folder.outboxd(args);
  REQUIRE_MESSAGE(done.status.code == 0, done.errors);
  return nlohmann::json::parse(done.output);
}

}  // namespace

TEST_CASE("migrate makes the tables, and a second time finds nothing to do") {
  const TestDatabase database;
  const CliFolder folder(one_pipeline(database.uri()));
  const auto first = migrate(folder, database);
  REQUIRE_MESSAGE(first.status.code == 0, first.errors);
  CHECK_MESSAGE(has(first.output, "payments: shared 3, outbox 4, consumer 3, applied shared/identity"),
                first.output);
  CHECK_MESSAGE(has(first.output, " outbox/lanes"), first.output);
  CHECK(has(folder.outboxd({"migrate"}).output, "nothing to do"));
}

TEST_CASE("migrate --print writes SQL and touches nothing") {
  const TestDatabase database;
  const CliFolder folder(one_pipeline(database.uri(), "    source: { table: '\"My Box\".\"m.s\"' }\n"));
  const auto printed = folder.outboxd({"migrate", "--print", "--grants"});
  CHECK(printed.status.code == 0);
  CHECK(has(printed.output, "\"My Box\".\"m.s\""));
  CHECK(has(printed.output, "GRANT"));
  const auto schemas = must(database.session().exec("SELECT 1 FROM pg_namespace WHERE nspname = 'My Box'"));
  CHECK(schemas.empty());
}

TEST_CASE(
    "a service without an outbox has the consumer's tables and their roles alone, and may get the rest "
    "later") {
  const TestDatabase database;
  const auto done = migrate(CliFolder(), database, {"--schema", "svc", "--only", "consumer", "--grants"});
  REQUIRE_MESSAGE(done.status.code == 0, done.errors);
  CHECK_MESSAGE(has(done.output, "svc: shared 3, consumer 3, applied"), done.output);
  auto session = database.session();
  CHECK(must(session.exec("SELECT 1 FROM pg_class WHERE relnamespace = 'svc'::regnamespace AND relname IN "
                          "('outbox_msg', 'outbox_lease', 'outbox_hold', 'outbox_asleep')"))
            .empty());
  must(session.exec_script("SET ROLE outbox_consumer"));
  CHECK(must(session.exec("SELECT svc.inbox_begin('c', gen_random_uuid(), sha256('x'), 't', 0, 1)"))
            .text(0, 0) == "fresh");
  must(session.exec("SELECT busy FROM svc.inbox_maintain(9)"));
  must(session.exec_script("RESET ROLE"));
  const auto all = migrate(CliFolder(), database, {"--table", "svc.msg", "--grants"});
  CHECK_MESSAGE(has(all.output, "shared 3, outbox 4, consumer 3, applied outbox/outbox"), all.output);
  CHECK(must(session.exec("SELECT 1 FROM svc.msg")).empty());
}

TEST_CASE("migrate --print of one set is what --only applies") {
  const TestDatabase database;
  const CliFolder folder;
  const auto printed =
      folder.outboxd({"migrate", "--schema", "public", "--only", "consumer", "--grants", "--print"});
  REQUIRE(printed.status.code == 0);
  CHECK_FALSE(has(printed.output, "outbox_lease"));
  must(database.session().exec_script(printed.output));
  CHECK(has(migrate(folder, database, {"--schema", "public", "--only", "consumer"}).output, "nothing to do"));
}

TEST_CASE("a set of tables that is none is refused with those that are") {
  const TestDatabase database;
  for (const char* option : {"--only", "--with"}) {
    const auto done = migrate(CliFolder(), database, {"--schema", "public", option, "inbox"});
    CHECK(done.status.code == 2);
    CHECK_MESSAGE(has(done.errors, "no set of migrations 'inbox'"), done.errors);
    CHECK_MESSAGE(has(done.errors, "the sets are: outbox and consumer"), done.errors);
  }
  const auto view = migrate(
      CliFolder(), database,
      {"--schema", "public", "--only", "consumer", "--view", "v", "--column", "b=body", "--topic", "t"});
  CHECK(view.status.code == 2);
  CHECK_MESSAGE(has(view.errors, "without the set outbox"), view.errors);
}

TEST_CASE("migrate --table needs no file") {
  const TestDatabase database;
  const auto done = migrate(CliFolder(), database, {"--table", "box.msg"});
  CHECK(done.status.code == 0);
  CHECK(must(database.session().exec("SELECT 1 FROM box.msg")).empty());
}

TEST_CASE(
    "migrate --view makes a view with an application's columns, says so, and a second time finds it as "
    "asked") {
  const TestDatabase database;
  const CliFolder folder(one_pipeline(database.uri()));
  const auto asked = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--view", "shop_outbox", "--column", "id=msg_id", "--column", "payload=body"});
    return migrate(folder, database, std::move(more));
  };
  const auto first = asked({"--topic", "orders"});
  REQUIRE_MESSAGE(first.status.code == 0, first.errors);
  CHECK_MESSAGE(has(first.output, ", view \"public\".\"shop_outbox\" made\n"), first.output);
  must(database.session().exec("INSERT INTO shop_outbox (payload) VALUES ('1')"));
  CHECK(has(asked({"--topic", "orders"}).output,
            "nothing to do, view \"public\".\"shop_outbox\" is as asked\n"));
  CHECK(has(asked({"--column", "kind=topic", "--grants"}).output,
            "grants applied, view \"public\".\"shop_outbox\" replaced\n"));
  CHECK(must(database.session().exec("SELECT has_table_privilege('outbox_app', 'shop_outbox', 'INSERT')"))
            .text(0, 0) == "t");

  const auto no_topic = asked({});
  CHECK(no_topic.status.code == 2);
  CHECK(has(no_topic.errors, "no column of the view is the topic"));
  CHECK(asked({"--column", "kind"}).status.code == 2);
  CHECK(migrate(folder, database, {"--column", "a=body"}).status.code == 2);
  const auto nowhere = asked({"--topic", "orders", "--column", "x=nowhere"});
  CHECK(nowhere.status.code == 4);
  CHECK(has(nowhere.errors, "has no column \"nowhere\""));
}

TEST_CASE("migrate --print --view prints a script that makes the view, and migrate then finds it as asked") {
  const TestDatabase database;
  const CliFolder folder(one_pipeline(database.uri()));
  const std::vector<std::string> view{"--view",          "shop_outbox", "--column",
                                      "kind:text=topic", "--column",    "payload=body"};
  auto printed = view;
  printed.insert(printed.end(), {"--print", "--grants"});
  const auto script = migrate(folder, database, printed);
  REQUIRE_MESSAGE(script.status.code == 0, script.errors);
  must(database.session().exec_script(script.output));
  must(database.session().exec("INSERT INTO shop_outbox (kind, payload) VALUES ('orders', '1')"));
  CHECK(has(migrate(folder, database, view).output,
            "nothing to do, view \"public\".\"shop_outbox\" is as asked\n"));
}

TEST_CASE("status counts what waits, what is held and what is dead, and names owner and holds") {
  const TestDatabase database;
  const CliFolder folder(one_pipeline(database.uri()));
  REQUIRE(migrate(folder, database).status.code == 0);
  must(database.session().exec_script(R"(
    INSERT INTO outbox_msg (topic, msg_key, body, status) SELECT 't', 'k' || n, '{}', 'PENDING' FROM generate_series(1, 7) n;
    INSERT INTO outbox_msg (topic, body, available_at) VALUES ('t', '1', now() - interval '1 min'), ('t', '2', now() + interval '1 h');
    INSERT INTO outbox_msg (topic, msg_key, body, status) VALUES ('t', E'a\nb', '1', 'HELD'), ('t', 'c', '2', 'DEAD'), ('t', 'c', '2', 'DEAD');
    INSERT INTO outbox_msg (topic, body, status) SELECT 't', '1', 'SENT' FROM generate_series(1, 30);
    INSERT INTO outbox_msg (topic, body, status) VALUES ('t', '1', 'CANCELLED'), ('t', '1', 'DISCARDED');
    INSERT INTO outbox_hold (source, scope, topic, msg_key, reason) VALUES ('public.outbox_msg', 'key', 't', E'a\nb', E'too\x1b[2J large');
    INSERT INTO outbox_hold (source, scope, topic, reason) VALUES ('other.outbox', 'topic', 't', 'not ours');
    SELECT outbox_lanes_keep('public.outbox_msg', 'host:1-abc', 8, '1 min', 12.5))"));

  const auto cheap = status_json(folder);
  CHECK(cheap["pipeline"] == "payments");
  CHECK(cheap["counts"]["pending"] == 7);
  CHECK(cheap["counts"]["due"] == 1);
  CHECK(cheap["counts"]["scheduled"] == 1);
  CHECK(cheap["counts"]["held"] == 1);
  CHECK(cheap["counts"]["dead"] == 2);
  CHECK(cheap["counts"]["sent_estimated"] == true);
  CHECK(cheap["oldest_waiting_ms"].get<int>() >= 60'000);
  CHECK(cheap["sent_per_s"] == 12.5);
  CHECK(cheap["lanes"].size() == 8);
  CHECK(cheap["lanes"][7]["owner"] == "host:1-abc");
  CHECK(cheap["lanes"][7]["epoch"] == 1);
  CHECK(cheap["lanes"][7]["remaining_ms"].get<int>() > 0);
  CHECK(cheap["holds_total"] == 1);
  CHECK(cheap["holds"][0]["key"] == "a\nb");

  const auto exact = status_json(folder, {"--exact"});
  CHECK(exact["counts"]["sent"] == 30);
  CHECK(exact["counts"]["cancelled"] == 1);
  CHECK(exact["counts"]["discarded"] == 1);

  const auto text = folder.outboxd({"status"});
  CHECK(text.output.find('\x1b') == std::string::npos);
  CHECK(has(text.output, "payments\n  pending 7  due 1  scheduled 1  held 1  dead 2  sent ~"));
  CHECK(has(text.output, "  lanes 0-7  epoch 1  owner host:1-abc, renewed "));
  CHECK(has(text.output, R"(    key t key "a\nb"  since )"));
}

TEST_CASE("status names each instance with its lanes, and one without a lane too") {
  const TestDatabase database;
  const CliFolder folder(one_pipeline(database.uri()));
  REQUIRE(migrate(folder, database).status.code == 0);
  must(database.session().exec_script(R"(
    SELECT outbox_lanes_keep('public.outbox_msg', 'host:1-a/payments', 3, '1 min', 2.5, 'exactly_once');
    SELECT outbox_lanes_keep('public.outbox_msg', 'host:2-b/payments', 3, '1 min', 1, 'exactly_once');
    SELECT outbox_lanes_give('public.outbox_msg', 'host:1-a/payments', '{1}', '{1}', false);
    SELECT outbox_lanes_keep('public.outbox_msg', 'host:2-b/payments', 3, '1 min', 1, 'exactly_once', E'lane 2: a\nb');
    SELECT outbox_lanes_keep('public.outbox_msg', 'host:3-c/payments', 4, '1 min'))"));
  const auto json = status_json(folder);
  CHECK(json["lane_generation"] == 1);
  CHECK(json["sent_per_s"] == 3.5);
  REQUIRE(json["instances"].size() == 3);
  CHECK(json["instances"][0]["name"] == "host:1-a/payments");
  CHECK(json["instances"][0]["lanes"] == nlohmann::json{0, 2});
  CHECK(json["instances"][1]["lanes"] == nlohmann::json{1});
  CHECK(json["instances"][2]["lanes"].empty());
  CHECK(json["instances"][2]["lanes_asked"] == 4);
  CHECK(json["instances"][2]["age_ms"].get<int>() >= 0);
  CHECK(json["instances"][2]["renewed_ago_ms"].get<int>() < 60'000);
  CHECK(json["instances"][1]["delivery"] == "exactly_once");
  CHECK(json["instances"][1]["stopped"] == "lane 2: a\nb");
  CHECK(json["instances"][2]["delivery"] == "at_least_once");
  CHECK(json["instances"][2]["stopped"] == "");
  const auto text = folder.outboxd({"status"}).output;
  CHECK(has(text, " ago, exactly_once\n      stopped: \"lane 2: a\\nb\"\n"));
  CHECK(has(text, "  instances 3  lanes 3  generation 1\n"));
  CHECK(has(text, "    host:1-a/payments  lanes 0,2  since "));
  CHECK(has(text, "    host:3-c/payments  lanes none  since "));
  CHECK(has(text, " ago, asks for 4 lanes, at_least_once\n"));
}

TEST_CASE("status names who keeps dead rows from being cleaned away, once it is open for long") {
  const TestDatabase database;
  const CliFolder folder(one_pipeline(database.uri()));
  REQUIRE(migrate(folder, database).status.code == 0);
  auto idle = database.session();
  must(idle.exec_script("SET application_name = 'nightly report'; BEGIN ISOLATION LEVEL REPEATABLE READ"));
  const auto pid = std::string(must(idle.exec("SELECT pg_backend_pid()")).text(0, 0));
  must(database.session().exec("INSERT INTO outbox_msg (topic) VALUES ('t')"));
  const auto horizon = status_json(folder)["horizon"];
  CHECK(horizon["kind"] == "session");
  CHECK_MESSAGE(has(horizon["name"], "pid " + pid + " user "), horizon.dump());
  CHECK(has(horizon["name"], " application nightly report"));
  CHECK(horizon["state"] == "idle in transaction");
  CHECK(horizon["transactions"].get<int>() > 0);
  CHECK_FALSE(has(folder.outboxd({"status"}).output, "dead rows stay"));
  must(idle.exec("COMMIT"));
  outbox::commands::StatusReport later;
  later.horizon = {"session", "pid 7 user ops", 12'345, outbox::Millis{300'000}, "idle in transaction"};
  CHECK(has(outbox::commands::status_text("payments", later),
            "  dead rows stay for session \"pid 7 user ops\", idle in transaction, open for 5m, 12,345 "
            "transactions "
            "back\n"));
}

TEST_CASE("status of a table never relayed has no owner, no age and no holds") {
  const TestDatabase database;
  const CliFolder folder(one_pipeline(database.uri()));
  REQUIRE(migrate(folder, database).status.code == 0);
  const auto empty = status_json(folder);
  CHECK(empty["counts"]["pending"] == 0);
  CHECK(empty["oldest_waiting_ms"].is_null());
  CHECK(empty["lanes"].empty());
  CHECK(has(folder.outboxd({"status"}).output, "oldest waiting none"));
}

TEST_CASE("status reads no sent row: it costs the same with fifty thousand of them") {
  const TestDatabase database;
  REQUIRE(migrate(CliFolder(), database, {"--table", "public.outbox_msg"}).status.code == 0);
  auto session = database.session();
  const auto plan = [&] {
    must(session.exec("BEGIN"));
    must(session.exec(outbox::sql::queries::status_settings));
    const auto sql = outbox::pg::fill_template(outbox::sql::queries::status_counts,
                                               {{"table", "\"public\".\"outbox_msg\""}});
    const auto rows = must(session.exec("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + sql));
    auto json = nlohmann::json::parse(rows.text(0, 0));
    must(session.exec("COMMIT"));
    return json[0]["Plan"];
  };
  const auto blocks = [](const nlohmann::json& p) {
    return p["Shared Hit Blocks"].get<int>() + p["Shared Read Blocks"].get<int>();
  };
  must(session.exec("INSERT INTO outbox_msg (topic, body) VALUES ('t', '1')"));
  must(session.exec("VACUUM ANALYZE outbox_msg"));
  plan();  // the catalogs are in the caches of the session now
  const int before = blocks(plan());
  must(session.exec(
      "INSERT INTO outbox_msg (topic, body, status) SELECT 't', '1', 'SENT' FROM generate_series(1, 50000)"));
  must(session.exec("VACUUM ANALYZE outbox_msg"));
  plan();
  const auto after = plan();
  CHECK_MESSAGE(blocks(after) <= 2 * before, before);
  CHECK(after.dump().find("Seq Scan") == std::string::npos);
}

TEST_CASE("a start-up problem is one clear line with its exit code, and no secret in it") {
  const PostgresServer server({.settings = {}, .host_auth = "scram-sha-256"});
  const std::string socket = "postgresql:///postgres?host=" + server.socket_folder() +
                             "&port=" + std::to_string(server.port()) + "&user=postgres";
  auto session = must(outbox::pg::Session::connect({.uri = socket}));
  must(session.exec("CREATE ROLE poor LOGIN PASSWORD 'right'"));
  const std::string host = "127.0.0.1:" + std::to_string(server.port());

  struct Case {
    std::string uri;
    int code;
    const char* sqlstate;
  };
  const Case cases[] = {
      {"postgresql://poor:hush@" + host + "/postgres", 4, "28P01"},
      {"postgresql://poor:right@" + host + "/nowhere", 4, "3D000"},
      {"postgresql://poor:right@" + host + "/postgres", 4, "42P01"},
      {"postgresql://poor:right@127.0.0.1:1/postgres", 3, "127.0.0.1"},
  };
  for (const Case& wrong : cases) {
    const auto status = CliFolder(one_pipeline(wrong.uri)).outboxd({"status"});
    CHECK_MESSAGE(status.status.code == wrong.code, status.errors);
    CHECK_MESSAGE(has(status.errors, wrong.sqlstate), status.errors);
    CHECK(status.errors.starts_with("outboxd: payments: "));
    CHECK(std::ranges::count_if(status.errors, [](char c) { return c == '\n'; }) == 1);
    CHECK_FALSE(has(status.errors, "hush"));
    if (wrong.code == 3) continue;
    const auto run = CliFolder(one_pipeline(wrong.uri)).outboxd({"run"});
    CHECK_MESSAGE(run.status.code == wrong.code, run.errors);
    CHECK_MESSAGE(has(run.errors, "error database_refused pipeline=payments error=\""), run.errors);
    CHECK_MESSAGE(has(run.errors, wrong.sqlstate), run.errors);
  }

  must(session.exec("ALTER ROLE poor CREATEROLE"));
  REQUIRE(CliFolder().outboxd({"migrate", "--table", "public.outbox_msg", "--uri", socket}).status.code == 0);
  const auto refused =
      CliFolder(one_pipeline("postgresql://poor:right@" + host + "/postgres")).outboxd({"run"});
  CHECK(refused.status == ExitStatus{4, 0});
  CHECK_MESSAGE(has(refused.errors, "42501"), refused.errors);
}

TEST_CASE("with log.format json every line of standard error is one JSON object") {
  const TestDatabase database;
  const CliFolder folder(
      "log: { format: json, level: debug }\n" +
      one_pipeline(database.uri(), "    source: { table: '\"no\"\"body \u2028\"', after_sent: delete }\n"));
  const auto done = folder.outboxd({"run"});
  CHECK(done.status.code == 4);
  std::istringstream lines(done.errors);
  std::vector<std::string> events;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    CHECK(json["time"].get<std::string>().size() == std::string_view("2026-11-29T16:05:00.123456Z").size());
    CHECK(json["level"].is_string());
    events.push_back(json["event"]);
  }
  CHECK(events == std::vector<std::string>{"starting", "rows_are_deleted_once_sent", "database_refused"});
}

TEST_CASE("status --watch looks again and again, and through a pipe without a word to a terminal") {
  const TestDatabase database;
  const CliFolder folder(one_pipeline(database.uri()));
  REQUIRE(migrate(folder, database).status.code == 0);
  for (const bool json : {true, false}) {
    ProcessOptions options;
    options.args = {"status", "-c", folder.file(), "--watch"};
    if (json) options.args.emplace_back("--json");
    Process watch(OUTBOXD_PROGRAM, options);
    eventually("a second look", [&] {
      const std::string output = watch.output();
      const auto first = output.find("payments");
      return first != std::string::npos && output.find("payments", first + 1) != std::string::npos;
    });
    watch.kill(SIGTERM);
    CHECK(watch.wait().signal == SIGTERM);
    CHECK(watch.output().find('\x1b') == std::string::npos);
  }
}
