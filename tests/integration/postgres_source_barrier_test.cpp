// The durability barrier: a row is handed out only when a crash of the server cannot take it back.

#include <doctest/doctest.h>

#include "tests/contract/postgres_world.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

// A server that leaves unflushed what synchronous_commit = off lets it.
std::unique_ptr<PostgresServer> lazy_server() {
  PostgresOptions options;
  options.settings = {
      {"wal_writer_delay", "10000"}, {"wal_writer_flush_after", "1000000"}, {"autovacuum", "off"}};
  return std::make_unique<PostgresServer>(std::move(options));
}

// Commits a row asynchronously, claims it, then the machine loses power. Is the row that was handed out still
// there?
bool survives(relay::Barrier barrier) {
  const auto server = lazy_server();
  PostgresWorldOptions options;
  options.server = server->uri();
  options.barrier = barrier;
  auto world = std::make_unique<PostgresWorld>(std::move(options));
  lease(*world, "me");
  claim(*world);
  const std::string database = world->database().name();
  must(world->session().exec("SET synchronous_commit = off"));
  const auto id = world->insert({});
  const auto batch = claim(*world);
  REQUIRE(ids_of(batch.rows) == std::vector{id});
  server->kill();
  world->source().stop();
  server->start();
  auto session = must(pg::Session::connect({.uri = server->uri(database)}));
  const auto rows = must(session.exec("SELECT 1 FROM outbox_msg WHERE id = " + std::to_string(id)));
  return !rows.empty();
}

}  // namespace

TEST_CASE("a claimed row survives a crash of the server, even one written with synchronous_commit = off") {
  CHECK(survives(relay::Barrier::on));
}

TEST_CASE("without the barrier that row would be a phantom: published and never committed") {
  // The server flushes now and then on its own account, so one such moment is forgiven.
  CHECK((!survives(relay::Barrier::off) || !survives(relay::Barrier::off)));
}

TEST_CASE("a look that finds nothing, or finds everything on disk, writes nothing to the log") {
  const auto server = lazy_server();
  PostgresWorldOptions options;
  options.server = server->uri();
  PostgresWorld world(std::move(options));
  const auto leases = lease(world, "me");
  world.insert({});
  mark(world, sent(claim(world).rows, leases));
  claim(world);
  const auto written = [&] { return world.sql("SELECT pg_current_wal_insert_lsn()"); };
  // The server writes a record of its own now and then, so one of a few rounds has to be silent.
  bool silent = false;
  for (int round = 0; round < 5 && !silent; ++round) {
    const std::string before = written();
    for (int n = 0; n < 10; ++n) claim(world);
    silent = written() == before;
  }
  CHECK(silent);
}
