// What only a real server can show of PostgresSource::claim.

#include <doctest/doctest.h>

#include <array>

#include "relay/postgres/source_sql.hpp"
#include "tests/contract/postgres_world.hpp"

using namespace outbox;
using namespace outbox::test;

TEST_CASE("bodies beyond the byte budget are not even read: 1 MB rows") {
  PostgresWorld world;
  world.sql(
      "INSERT INTO {{table}} (topic, msg_key, body) SELECT 't', 'k' || n % 8, "
      "to_json((SELECT string_agg(md5(n::text || i::text), '') FROM generate_series(1, 32700) i)) "
      "FROM generate_series(1, 24) n");
  // On the test's own session, which can say how many pages of bodies its claim has read.
  auto& session = world.session();
  const relay::SourceSql sql(world.table(), relay::BodyColumn::json);
  const auto body_pages_read = [&] {
    world.sql("SELECT pg_stat_force_next_flush()");
    world.sql("SELECT 1");
    return std::stoll(
        world.sql("SELECT coalesce(sum(pg_stat_get_blocks_fetched(c.reltoastrelid)), 0) FROM pg_class c "
                  "WHERE c.oid IN (SELECT relid FROM pg_partition_tree('{{table}}'))"));
  };
  const auto before = body_pages_read();
  pg::Params params;
  const std::array<std::int16_t, 1> first{0};
  const std::array<std::int16_t, 1> last{63};
  params.i16s(first).i16s(last).i32(5000).i64(4 << 20).i64(0).null().text("public.outbox_msg").null();
  const auto rows = must(session.exec_prepared(*sql.claim_flat, params));
  REQUIRE(rows.size() == 5);  // four that fit, and a first one beyond, without its body
  constexpr int body = 14;
  CHECK(rows.text(3, body).size() > 1'000'000);
  CHECK(rows.is_null(4, body));
  const auto read = body_pages_read() - before;
  CHECK(read > 4 * 100);  // a body of 1 MB lies on about 132 pages; 24 of them would be 3,168
  CHECK(read < 5 * 140);
  MESSAGE("pages read for four bodies of 1 MB: ", read);
}

TEST_CASE("a flat look reads nothing of the shards it does not ask for, whatever waits there") {
  PostgresWorld world;
  world.sql(
      "INSERT INTO {{table}} (topic, msg_key, body) SELECT 't', 'k' || n, '1' FROM generate_series(1, 50000) "
      "n");
  world.sql("ANALYZE {{table}}");
  auto& session = world.session();
  const relay::SourceSql sql(world.table(), relay::BodyColumn::json);
  const auto rows_read = [&](std::int16_t from, std::int16_t to) {
    must(session.exec("BEGIN"));
    must(session.exec(*sql.settings));
    const std::array<std::int16_t, 1> first{from};
    const std::array<std::int16_t, 1> last{to};
    pg::Params params;
    params.i16s(first).i16s(last).i32(500).i64(8 << 20).i64(0).null().text("public.outbox_msg").null();
    const auto plan = must(session.exec(
        "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, FORMAT JSON) " + *sql.claim_flat, params));
    must(session.exec("ROLLBACK"));
    const std::string text(plan.text(0, 0));
    const std::string word = "\"Shared Hit Blocks\": ";
    return std::stoi(text.substr(text.find(word) + word.size()));
  };
  world.sql("UPDATE {{table}} SET status = 'SENT' WHERE shard BETWEEN 20 AND 30");
  world.sql("VACUUM {{table}}");
  CHECK(rows_read(20, 30) < 100);  // pages, of an index of hundreds
  CHECK(rows_read(0, 63) > 0);
}

TEST_CASE("1 MB rows of every shard are all brought, a few at a time") {
  PostgresWorld world;
  world.sql(
      "INSERT INTO {{table}} (topic, msg_key, body) SELECT 't', 'k' || n, to_json(repeat('x', 1000000)) "
      "FROM generate_series(1, 40) n");
  auto request = request_for(relay::Look::by_shard);
  request.bytes_max = 8 << 20;
  int claims = 0;
  while (request.except.size() < 40) {
    const auto batch = claim(world, request);
    CHECK(bytes_of(batch) <= request.bytes_max);
    REQUIRE_FALSE(batch.rows.empty());
    for (const relay::Message& m : batch.rows) request.except.push_back(name_of(m));
    REQUIRE(++claims < 40);
  }
}

TEST_CASE("a body goes out byte for byte from json, text and bytea, and as its text form from jsonb") {
  const std::string body = R"({"n":12345678901234567890.10,"e":[],"u":"\u00e9", "k":1})";
  for (const std::string type : {"json", "jsonb", "text", "bytea"}) {
    CAPTURE(type);
    PostgresWorldOptions options;
    options.body_type = type;
    PostgresWorld world(std::move(options));
    world.session().exec("SET bytea_output = escape").value();
    world.sql("ALTER DATABASE \"" + world.database().name() + "\" SET bytea_output = escape");
    pg::Params params;
    params.untyped(type == "bytea" ? "\\x00ff7b5c27" : std::string_view(body));
    world.sql("INSERT INTO {{table}} (topic, msg_key, body) VALUES ('t', 'k', $1)", params);
    const auto batch = claim(world);
    REQUIRE(batch.rows.size() == 1);
    if (type == "bytea") {
      CHECK(batch.rows[0].body == std::string_view("\x00\xff{\\'", 5));
    } else if (type == "jsonb") {
      CHECK(batch.rows[0].body == R"({"e": [], "k": 1, "n": 12345678901234567890.10, "u": "é"})");
    } else {
      CHECK(batch.rows[0].body == body);
    }
  }
}

TEST_CASE("an empty body is empty, and not a tombstone") {
  PostgresWorldOptions options;
  options.body_type = "text";
  PostgresWorld world(std::move(options));
  world.insert({.body = ""});
  world.insert({.body = std::nullopt});
  const auto batch = claim(world);
  REQUIRE(batch.rows.size() == 2);
  CHECK(batch.rows[0].body == "");
  CHECK_FALSE(batch.rows[1].body);
}

TEST_CASE("times are the same whatever the time zones of server and session") {
  PostgresWorld world;
  world.sql("ALTER DATABASE \"" + world.database().name() + "\" SET timezone = 'Pacific/Kiritimati'");
  world.sql(
      "INSERT INTO {{table}} (topic, body, created_at, available_at) VALUES "
      "('t', '{}', '2026-03-01 10:00:00.123456+02', NULL), ('t', '{}', now(), '2020-02-29 "
      "23:59:59.999999Z')");
  world.start_source();  // with sessions in that zone
  const auto batch = claim(world);
  REQUIRE(batch.rows.size() == 1);
  REQUIRE(batch.due.size() == 1);
  CHECK(rfc3339(batch.rows[0].created_at) == "2026-03-01T08:00:00.123456Z");
  CHECK(rfc3339(*batch.due[0].available_at) == "2020-02-29T23:59:59.999999Z");
}

TEST_CASE(
    "a scheduled row that an open transaction has cancelled is told as locked, though it is due by now") {
  PostgresWorld world;
  const auto id = world.insert({.due_in = Millis{5'400}});
  auto other = world.database().session();
  must(other.exec("BEGIN"));
  const auto answer = must(other.exec("SELECT outbox_cancel(msg_id) FROM outbox_msg"));
  REQUIRE(answer.text(0, 0) == "cancelled");
  world.pump([&] {
    return world.sql("SELECT count(*) FROM {{table}} WHERE available_at <= clock_timestamp()") == "1";
  });
  CHECK(claim(world).due.front().locked == relay::Locked::yes);
  must(other.exec("ROLLBACK"));
  CHECK(ids_of(claim(world).due) == std::vector{id});
  CHECK(claim(world).due.front().locked == relay::Locked::no);
}

// The first look waits for a table that it reads, and others commit meanwhile.
TEST_CASE("a claim sees its plain and its scheduled rows at one moment") {
  PostgresWorld world;
  world.insert({.key = "gate"});
  auto keeper = world.database().session();
  for (const relay::Look look : both_looks) {
    must(keeper.exec("BEGIN"));
    must(keeper.exec("LOCK TABLE outbox_hold IN ACCESS EXCLUSIVE MODE"));
    std::optional<relay::Batch> batch;
    world.source().claim(request_for(look), [&](Result<relay::Batch> answer) {
      REQUIRE(answer.has_value());
      batch = std::move(*answer);
    });
    world.pump([&] {
      return world.sql(
                 "SELECT count(*) FROM pg_locks WHERE relation = 'outbox_hold'::regclass AND NOT granted "
                 "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") == "1";
    });
    const auto plain = world.insert({.key = "k"});
    const auto scheduled = world.insert({.key = "k", .due_in = Millis{0}});
    must(keeper.exec("COMMIT"));
    world.pump([&] { return batch.has_value(); });
    CHECK(ids_of(batch->rows).size() == 1);
    CHECK(batch->due.empty());
    world.remove(plain);
    world.remove(scheduled);
  }
}

TEST_CASE("a release that commits while rows are being set HELD leaves none of them HELD") {
  PostgresWorld world;
  const auto id = world.insert({});
  hold(world, key_hold);
  auto other = world.database().session();
  must(other.exec("BEGIN"));
  must(other.exec("SELECT outbox_release('public.outbox_msg', 'key', 'payment.created', 'account-1')"));
  bool answered = false;
  world.source().set_held({name_of(world, id)}, [&](const Status& result) {
    CHECK(result.has_value());
    answered = true;
  });
  world.pump([&] {  // it waits for the release, or is through
    return answered || world.sql(
                           "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                           "AND wait_event_type = 'Lock'") == "1";
  });
  must(other.exec("COMMIT"));
  world.pump([&] { return answered; });
  CHECK(status(world, id) == "PENDING");
}

TEST_CASE("names with upper case, quotes and dots are a table like any other") {
  PostgresWorldOptions options;
  options.table = R"("My.Schema's"."Out""box.Msg")";
  PostgresWorld world(std::move(options));
  const auto leases = lease(world, "me");
  const auto id = world.insert({});
  const auto batch = claim(world);
  REQUIRE(ids_of(batch.rows) == std::vector{id});
  hold(world, key_hold);
  set_held(world, {id});
  release(world, key_hold);
  CHECK(pin(world, "t", 3) == 3);
  asked<void>(world, [&](auto done) { world.source().declare_asleep(Millis{1000}, std::move(done)); });
  CHECK(mark(world, sent(batch.rows, leases)).exceptions.empty());
  CHECK(status(world, id) == "SENT");
}

TEST_CASE("rows of several partitions and lanes are claimed together and marked in one call") {
  PostgresWorld world;
  const auto leases = lease(world, "me");
  for (int day = -1; day <= 3; ++day) {
    world.sql(
        "INSERT INTO {{table}} (topic, msg_key, body, created_at) SELECT 't', 'k' || n, '{}', now() + " +
        std::to_string(day) + " * interval '1 day' FROM generate_series(1, 20) n");
  }
  world.sql("INSERT INTO {{table}} (topic, body, created_at) VALUES ('t', '{}', '2001-01-01')");  // DEFAULT
                                                                                                  // partition
  const auto batch = claim(world, relay::Look::by_shard);
  REQUIRE(batch.rows.size() == 101);
  CHECK(mark(world, sent(batch.rows, leases)).exceptions.empty());
  CHECK(world.sql("SELECT count(*) FROM {{table}} WHERE status = 'SENT' AND sent_at IS NOT NULL") == "101");
}

TEST_CASE(
    "a partition renamed since its rows were claimed is found again, and one moved from is looked through") {
  PostgresWorld world;
  const auto leases = lease(world, "me");
  const auto first = world.insert({});
  mark(world, sent(claim(world).rows, leases));  // the partition's name is known now
  const auto second = world.insert({});
  const auto batch = claim(world);
  world.sql(
      "DO $$ DECLARE p regclass; BEGIN SELECT tableoid INTO p FROM outbox_msg LIMIT 1; "
      "EXECUTE format('ALTER TABLE %s RENAME TO renamed', p); END $$");
  CHECK(mark(world, sent(batch.rows, leases)).exceptions.empty());
  CHECK(status(world, first) == "SENT");
  CHECK(status(world, second) == "SENT");
}

TEST_CASE("a NOTIFY reaches the relay only while it has declared itself asleep") {
  PostgresWorld world;
  world.insert({});
  world.pass(Millis{100});
  CHECK(world.hints == 0);
  asked<void>(world, [&](auto done) { world.source().declare_asleep(Millis{60'000}, std::move(done)); });
  world.insert({});
  world.pump([&] { return world.hints > 0; });
  asked<void>(world, [&](auto done) { world.source().declare_asleep(Millis{0}, std::move(done)); });
  const int before = world.hints;
  world.insert({});
  world.pass(Millis{100});
  CHECK(world.hints == before);
}
