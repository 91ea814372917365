// The source's statements stay on their indexes, whatever the statistics say: EXPLAIN of the generic plans.

#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>

#include "relay/postgres/source_sql.hpp"
#include "tests/contract/postgres_world.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

enum class Settings { ours, none };

bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

// Every node that reads the outbox table must say `how` in the line after its own.
bool each_read_is(const std::string& plan, const std::string& how) {
  std::istringstream lines(plan);
  int reads = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!has(line, "using outbox_msg") && !has(line, "Scan on outbox_msg")) continue;
    ++reads;
    if (!std::getline(lines, line) || !has(line, how)) return false;
  }
  return reads > 0;
}

std::string plan_of(PostgresWorld& world, const relay::Sql& sql, int parameters, Settings settings) {
  auto& session = world.session();
  const relay::SourceSql all(world.table(), relay::BodyColumn::json);
  must(session.exec("BEGIN"));
  must(session.exec(settings == Settings::ours ? *all.settings
                                               : "SET LOCAL plan_cache_mode = force_generic_plan"));
  if (has(*sql, "s.address")) must(session.exec(*all.mark_settings));
  must(session.exec("PREPARE tried AS " + *sql));
  std::string nulls;
  for (int n = 0; n < parameters; ++n) nulls += nulls.empty() ? "NULL" : ", NULL";
  const auto rows = must(session.exec("EXPLAIN (COSTS OFF) EXECUTE tried(" + nulls + ")"));
  std::string plan;
  for (int row = 0; row < rows.size(); ++row) plan.append(rows.text(row, 0)).append("\n");
  must(session.exec("ROLLBACK"));
  must(session.exec("DEALLOCATE ALL"));
  return plan;
}

struct Tried {
  std::string name;
  relay::Sql sql;
  int parameters;
  std::string how;  // the outbox table is read
};

std::vector<Tried> statements(const pg::TableName& table, const std::string& partition,
                              const std::string& partition_column) {
  const relay::SourceSql all(table, relay::BodyColumn::json, partition_column);
  const relay::PartitionSql one(table, partition);
  std::vector<Tried> out;
  out.push_back({"claim_by_shard", all.claim_by_shard, 10, "Index Cond: ((shard = s.shard) AND (id > "});
  out.push_back({"claim_flat", all.claim_flat, 8, "Index Cond: ((shard >= r.low) AND (shard <= r.high))"});
  out.push_back({"claim_flat_above", all.claim_flat_above, 9, "Index Cond: ((shard = s.shard) AND (id > "});
  out.push_back({"claim_due", all.claim_due, 7, "now())"});
  out.push_back({"claim_end", all.claim_end, 2, "> now())"});
  out.push_back({"mark", one.mark, 10, "TID Cond: (ctid = s.address)"});
  out.push_back({"erase", one.erase, 8, "TID Cond: (ctid = s.address)"});
  out.push_back({"mark_look", all.mark_look, 1, "(id = "});
  out.push_back({"mark_cancelled", all.mark_cancelled, 5, "(id = "});
  out.push_back({"bury", all.bury, 10, "(id = "});
  out.push_back({"hold_lock", all.hold_lock, 3, "(id = "});
  out.push_back({"set_held", all.set_held, 3, "(id = "});
  return out;
}

void check_plans(PostgresWorld& world, const std::string& partition,
                 const std::string& partition_column = {}) {
  for (const Tried& tried : statements(world.table(), partition, partition_column)) {
    const std::string plan = plan_of(world, tried.sql, tried.parameters, Settings::ours);
    CAPTURE(tried.name);
    CAPTURE(plan);
    for (const char* never : {"Seq Scan on outbox_msg", "Bitmap", "Hash Join", "Merge Join", "Gather"}) {
      CHECK_FALSE(has(plan, never));
    }
    CHECK(each_read_is(plan, tried.how));
    if (tried.name.starts_with("claim_")) CHECK_FALSE(has(plan, "Sort\n"));
    if (tried.name.starts_with("claim_flat")) CHECK(has(plan, "_shard_id_idx"));
  }
}

}  // namespace

TEST_CASE("no statement of the source reads a table whole: empty, filled since the ANALYZE, and large") {
  PostgresWorld world;
  const std::string partition = world.sql(
      "SELECT min(relid::regclass::text) FROM pg_partition_tree('{{table}}') WHERE isleaf "
      "AND relid::regclass::text LIKE '%' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')");
  world.sql("ANALYZE {{table}}");
  check_plans(world, partition);
  world.sql(
      "INSERT INTO {{table}} (topic, msg_key, body, status, available_at) SELECT 't', 'k' || n % 1000, '{}', "
      "CASE WHEN n % 10 = 0 THEN 'PENDING' ELSE 'SENT' END, "
      "CASE WHEN n % 100 = 0 THEN now() + interval '1 day' END FROM generate_series(1, 120000) n");
  check_plans(world, partition);
  world.sql("ANALYZE {{table}}");
  check_plans(world, partition);
  world.sql("ALTER TABLE {{table}} ADD COLUMN shelf smallint");
  check_plans(world, partition, "shelf");
}

// OUTBOX_LONG_TESTS=1: fifty million of them.
TEST_CASE(
    "beside many SENT rows, the queue empty at the last ANALYZE, a hundred thousand new ones are read by "
    "index") {
  PostgresWorld world;
  const std::string partition = world.sql(
      "SELECT min(relid::regclass::text) FROM pg_partition_tree('{{table}}') WHERE isleaf "
      "AND relid::regclass::text LIKE '%' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')");
  const int sent = std::getenv("OUTBOX_LONG_TESTS") != nullptr ? 50'000'000 : 5'000'000;
  world.sql(
      "INSERT INTO {{table}} (msg_id, topic, msg_key, body, status, sent_at) SELECT gen_random_uuid(), 't', "
      "'k' || n "
      "% 1000, '{}', 'SENT', now() FROM generate_series(1, $1::int) n",
      pg::Params{}.i32(sent));
  world.sql("ANALYZE {{table}}");
  world.sql(
      "INSERT INTO {{table}} (topic, msg_key, body) SELECT 't', 'k' || n % 1000, '{}' FROM "
      "generate_series(1, 100000) "
      "n");
  check_plans(world, partition);
  // And so they run: the 5,000 rows asked for and those of other states are told apart by the index alone.
  auto reader = world.database().session();
  const relay::SourceSql all(world.table(), relay::BodyColumn::json);
  must(reader.exec("BEGIN"));
  must(reader.exec(*all.settings));
  must(reader.exec("PREPARE tried AS " + *all.claim_flat));
  const auto rows =
      must(reader.exec("EXECUTE tried(ARRAY[0::smallint], ARRAY[63::smallint], 5000, 100000000, 0, NULL, "
                       "'public.outbox_msg', NULL)"));
  CHECK(rows.size() == 5000);
  const auto read = must(reader.exec(
      "SELECT sum(seq_tup_read), sum(idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname LIKE "
      "'outbox\\_msg%'"));
  CHECK(read.text(0, 0) == "0");
  CHECK(std::stoi(std::string{read.text(0, 1)}) <= 5000);
  must(reader.exec("COMMIT"));
}

TEST_CASE("without those settings the planner does read tables whole") {
  PostgresWorld world;
  world.sql("ANALYZE {{table}}");
  const relay::SourceSql all(world.table(), relay::BodyColumn::json);
  CHECK(has(plan_of(world, all.bury, 10, Settings::none), "Seq Scan"));
}
