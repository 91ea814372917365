// The durability barrier: a row is handed out only when a crash of the server cannot take it back.

#include <doctest/doctest.h>

#include "tests/contract/postgres_world.hpp"
#include "tests/support/eventually.hpp"

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
enum class Role {
  as_is,
  lazy
};  // lazy: the relay's own connections have synchronous_commit = off by default

bool survives(relay::Barrier barrier, Role role = Role::as_is) {
  const auto server = lazy_server();
  PostgresWorldOptions options;
  options.server = server->uri();
  options.barrier = barrier;
  options.started = false;
  auto world = std::make_unique<PostgresWorld>(std::move(options));
  if (role == Role::lazy)
    must(world->session().exec("ALTER DATABASE " + world->database().name() +
                               " SET synchronous_commit = off"));
  world->start_source();
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

TEST_CASE(
    "a claimed row survives a crash of the server where synchronous_commit is off for the relay itself") {
  CHECK(survives(relay::Barrier::on, Role::lazy));
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

namespace {

// A primary that waits for its standby, and the standby.
struct Cluster {
  Cluster() {
    must(must(pg::Session::connect({.uri = primary->uri()}))
             .exec("ALTER SYSTEM SET synchronous_standby_names = '*'"));
    must(must(pg::Session::connect({.uri = primary->uri()})).exec("SELECT pg_reload_conf()"));
    eventually("the standby is synchronous", [&] {
      auto session = must(pg::Session::connect({.uri = primary->uri()}));
      return must(session.exec("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"))
                 .integer(0, 0) == 1;
    });
  }
  void fail_over() {
    primary->kill();
    standby->start();
    standby->promote();
  }
  std::unique_ptr<PostgresServer> primary = std::make_unique<PostgresServer>();
  std::unique_ptr<PostgresServer> standby =
      std::make_unique<PostgresServer>(PostgresOptions{.standby_of = primary.get()});
};

// A writer that does not wait for the standby commits a row, which the standby never gets: it is down, and
// when it is back the primary is gone. Is a row handed out that the promoted standby does not have?
bool hands_out_a_phantom(relay::Barrier barrier) {
  Cluster cluster;
  PostgresWorldOptions options;
  options.server = cluster.primary->uri();
  options.barrier = barrier;
  PostgresWorld world(std::move(options));
  lease(world, "me");
  claim(world);
  const std::string database = world.database().name();
  eventually("the standby has it all", [&] {
    auto session = pg::Session::connect({.uri = cluster.standby->uri(database)});
    return session && session->exec("SELECT count(*) FROM outbox_lease WHERE owner IS NOT NULL").has_value();
  });
  must(world.session().exec("SET synchronous_commit = local"));
  cluster.standby->stop();
  const auto id = world.insert({});
  std::optional<Result<relay::Batch>> answer;
  world.source().claim(request_for(relay::Look::flat),
                       [&](Result<relay::Batch> batch) { answer = std::move(batch); });
  for (int n = 0; n < 100 && !answer; ++n) world.pass(Millis{10});
  const bool handed_out = answer && *answer && !(*answer)->rows.empty();
  world.source().stop();
  cluster.fail_over();
  auto session = must(pg::Session::connect({.uri = cluster.standby->uri(database)}));
  const auto rows = must(session.exec("SELECT 1 FROM outbox_msg WHERE id = " + std::to_string(id)));
  return handed_out && rows.empty();
}

}  // namespace

TEST_CASE("before a failover to a synchronous standby no row is handed out that only the primary has") {
  CHECK_FALSE(hands_out_a_phantom(relay::Barrier::on));
}

TEST_CASE("without the barrier such a row would be handed out, and gone after the failover") {
  CHECK(hands_out_a_phantom(relay::Barrier::off));
}
