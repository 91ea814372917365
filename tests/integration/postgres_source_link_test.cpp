// Start, loss and recovery of PostgresSource's connections, and what it says where the table is not as it
// must be.

#include <doctest/doctest.h>

#include "relay/postgres/source_facts.hpp"
#include "tests/contract/postgres_world.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

std::string complaint(PostgresWorld& world, const std::string& partition_column = {}) {
  const auto facts = relay::inspect(world.session(), world.table(), partition_column);
  return facts ? "" : facts.error().text();
}

}  // namespace

TEST_CASE("a missing table is one clear line, calls are refused, and it is found when it comes") {
  PostgresWorldOptions options;
  options.migrated = false;
  PostgresWorld world(std::move(options));
  world.pump([&] { return !world.links.empty(); });
  CHECK(world.links.back().first == relay::LinkState::down);
  CHECK(complaint(world).find("there is no table \"public\".\"outbox_msg\"") != std::string::npos);
  const auto answer = ask<relay::Batch>(
      world, [&](auto done) { world.source().claim(request_for(relay::Look::flat), std::move(done)); });
  CHECK_FALSE(answer);
  world.migrate();
  world.pump([&] { return world.links.back().first == relay::LinkState::up; });
  CHECK(world.links.size() == 2);
  CHECK(claim(world).rows.empty());
}

TEST_CASE("what is wrong with a table is named: schema, neighbour, column, type, privilege") {
  PostgresWorld world;
  CHECK(complaint(world).empty());
  const auto says = [&](const std::string& change, const std::string& words) {
    must(world.session().exec("BEGIN"));
    must(world.session().exec_script(change));
    CHECK(complaint(world).find(words) != std::string::npos);
    must(world.session().exec("ROLLBACK"));
  };
  says("ALTER TABLE outbox_hold RENAME TO elsewhere", "no table \"public\".\"outbox_hold\"");
  says("ALTER TABLE outbox_msg DROP COLUMN generation", "no column generation");
  says("ALTER TABLE outbox_msg DROP COLUMN body CASCADE", "no column body");
  says("ALTER TABLE outbox_msg DROP COLUMN body CASCADE; ALTER TABLE outbox_msg ADD body xml",
       "is of type xml");
  auto relay_session = world.database().session("outbox_relay");
  world.sql("REVOKE UPDATE ON outbox_msg FROM outbox_relay");
  const auto facts = relay::inspect(relay_session, world.table());
  REQUIRE_FALSE(facts);
  CHECK(facts.error().text().find("it lacks UPDATE") != std::string::npos);
  const auto other = relay::inspect(world.session(), pg::TableName{"nowhere", "outbox_msg"});
  REQUIRE_FALSE(other);
  CHECK(other.error().text().find("no schema \"nowhere\"") != std::string::npos);
}

TEST_CASE("row level security that may hide rows is refused by name at start, of a partition too") {
  PostgresWorld world;
  auto relay_session = world.database().session("outbox_relay");
  const auto refused = [&] {
    const auto facts = relay::inspect(relay_session, world.table());
    return facts ? "" : facts.error().text();
  };
  CHECK(refused() == "");
  for (const std::string table : {"outbox_msg", "outbox_msg_default", "outbox_hold", "outbox_lease"}) {
    CAPTURE(table);
    world.sql("ALTER TABLE " + table + " ENABLE ROW LEVEL SECURITY");
    CHECK(refused().find("row level security is on for \"" + table + "\"") != std::string::npos);
    CHECK(complaint(world).empty());  // who is exempt sees all
    world.sql("ALTER TABLE " + table + " DISABLE ROW LEVEL SECURITY");
  }
  CHECK(refused() == "");
}

TEST_CASE(
    "row level security that is switched on while the relay runs is an error, and never an empty queue") {
  PostgresWorld world;
  world.sql("INSERT INTO outbox_msg (topic) VALUES ('t')");
  world.sql("ALTER TABLE outbox_msg ENABLE ROW LEVEL SECURITY");
  const auto answer = ask<relay::Batch>(
      world, [&](auto done) { world.source().claim(request_for(relay::Look::flat), std::move(done)); });
  REQUIRE_FALSE(answer);
  CHECK(answer.error().text().find("row-level security") != std::string::npos);
  world.sql("ALTER TABLE outbox_msg DISABLE ROW LEVEL SECURITY");
  CHECK(claim(world).rows.size() == 1);
}

TEST_CASE("what a server displays as its operators like is read all the same") {
  PostgresWorld world;
  world.sql("ALTER TABLE outbox_msg ADD COLUMN shelf int");
  must(world.session().exec("SET quote_all_identifiers = on"));
  CHECK(complaint(world, "shelf").empty());
}

TEST_CASE("a partition column that is missing, of another type, or outboxd's own is named") {
  PostgresWorld world;
  world.sql(
      "ALTER TABLE outbox_msg ADD COLUMN shelf smallint, ADD COLUMN \"Shelf\" int, ADD COLUMN name text");
  CHECK(complaint(world, "shelf").empty());
  CHECK(complaint(world, "Shelf").empty());
  CHECK(complaint(world, "SHELF").find("is missing") != std::string::npos);
  CHECK(complaint(world, "name").find("is of type text") != std::string::npos);
  CHECK(complaint(world, "shard").find("is outboxd's own") != std::string::npos);
}

TEST_CASE("after the server was gone the source is up again by itself, and each change is told once") {
  PostgresServer server;
  PostgresWorldOptions options;
  options.server = server.uri();
  PostgresWorld world(std::move(options));
  const auto id = world.insert({});
  server.stop();
  world.pump([&] { return world.links.back().first == relay::LinkState::down; });
  const auto answer = ask<relay::Batch>(
      world, [&](auto done) { world.source().claim(request_for(relay::Look::flat), std::move(done)); });
  CHECK_FALSE(answer);
  world.pass(Millis{500});
  server.start();
  world.pump([&] { return world.links.back().first == relay::LinkState::up; });
  CHECK(world.links.size() == 3);
  CHECK(ids_of(claim(world).rows) == std::vector{id});
}

TEST_CASE("an instance that comes, and lanes that are given back, are told to the others at once") {
  PostgresWorld world;
  lease(world, "a");
  world.pump([&] { return world.lane_hints == 1; });
  const auto keep = [&](const std::string& name) {
    world.sql("SELECT count(*) FROM {{schema}}.outbox_lanes_keep('" + world.table().schema + "." +
              world.table().table + "', '" + name + "', 8, '1 minute')");
  };
  keep("b");
  world.pump([&] { return world.lane_hints == 2; });
  keep("b");
  world.sql("SELECT {{schema}}.outbox_lanes_give('" + world.table().schema + "." + world.table().table +
            "', 'a', '{7}', '{1}', false)");
  world.pump([&] { return world.lane_hints == 3; });
}
