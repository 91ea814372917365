// Beside an old snapshot, which keeps dead entries in the index of unsent rows, a claim that begins at its
// floors costs what it costs in an empty table.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "tests/contract/postgres_world.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

double median_ms(PostgresWorld& world, const relay::ClaimRequest& request) {
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    const auto batch = claim(world, request);
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count());
    CHECK(batch.rows.empty());
  }
  std::ranges::nth_element(times, times.begin() + 7);
  return times[7];
}

}  // namespace

TEST_CASE(
    "with a long transaction open while a hundred thousand rows pass a claim above its floors stays flat") {
  PostgresWorld world;
  auto request = request_for(relay::Look::flat);
  const double empty = median_ms(world, request);
  auto old = world.database().session();
  must(old.exec_script("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM outbox_msg"));
  world.sql(
      "INSERT INTO {{table}} (topic, msg_key, body) SELECT 't', (n % 1000)::text, '{}' FROM "
      "generate_series(1, "
      "100000) n");
  world.sql("UPDATE {{table}} SET status = 'SENT', sent_at = now()");
  const double unbounded = median_ms(world, request);
  request.floors.assign(relay::shard_count, relay::RowId{100'000});
  request.releases = 0;
  const double flat = median_ms(world, request);
  request.look = relay::Look::by_shard;
  request.shards.resize(8);
  const double by_shard = median_ms(world, request);
  MESSAGE("ms a claim: empty " << empty << ", dead entries " << unbounded << ", above the floors " << flat
                               << ", by shard " << by_shard);
  CHECK(flat < empty + 10);
  CHECK(by_shard < empty + 10);
  CHECK(unbounded > 5 * flat);
  must(old.exec("COMMIT"));
}

TEST_CASE(
    "a claim tells a number above that of every transaction that runs, also where none has ended since it "
    "began") {
  PostgresWorld world;
  auto running = world.database().session();
  must(running.exec("BEGIN"));
  const auto begun = must(running.exec("SELECT pg_current_xact_id()::text::bigint"));
  const auto number = begun.integer(0, 0);
  const auto batch = claim(world);
  CHECK(batch.horizon.next_transaction > number);
  CHECK(batch.horizon.oldest_running <= number);
  must(running.exec("COMMIT"));
}
