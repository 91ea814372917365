#include "relay/check/postgres_facts.hpp"

#include "relay/postgres/survey_facts.hpp"
#include "sql/queries/operator.hpp"
#include "sql/queries/relay.hpp"

namespace outbox::relay {
namespace {

Micros since_epoch() {
  return std::chrono::duration_cast<Micros>(std::chrono::system_clock::now().time_since_epoch());
}

std::string source_of(const pg::TableName& table) {
  return table.schema + "." + table.table;
}

std::string text_or_empty(const pg::Rows& rows, int column) {
  return std::string{rows.text_or_null(0, column).value_or("")};
}

std::int64_t integer_or(const pg::Rows& rows, int column, std::int64_t otherwise) {
  return rows.is_null(0, column) ? otherwise : rows.integer(0, column);
}

}  // namespace

Result<ServerFacts> read_server_facts(pg::Session& session) {
  const Micros before = since_epoch();
  const auto rows = session.exec(sql::queries::check_server);
  if (!rows) return failure(rows.error());
  const Micros middle = before + (since_epoch() - before) / 2;
  ServerFacts facts;
  facts.version = rows->integer(0, 0);
  facts.standby = rows->boolean(0, 1);
  facts.read_only = rows->boolean(0, 2);
  facts.fsync = rows->boolean(0, 3);
  facts.full_page_writes = rows->boolean(0, 4);
  facts.synchronous_commit = rows->text(0, 5);
  facts.statement_timeout = Millis{rows->integer(0, 6)};
  facts.clock_ahead = Micros{rows->integer(0, 7)} - middle;
  facts.pooled = rows->integer(0, 8) != session.backend_pid();
  facts.sees_others = rows->boolean(0, 9);
  facts.superuser = rows->boolean(0, 10);
  if (!rows->is_null(0, 11)) facts.oldest_transaction = Millis{rows->integer(0, 11)};
  facts.prepared_transactions = rows->integer(0, 12);
  facts.idle_slots = text_or_empty(*rows, 13);
  facts.wal_level = rows->text(0, 14);
  facts.standbys_wanted = rows->text(0, 15);
  facts.standbys_in_sync = rows->integer(0, 16);
  facts.notify_queue = static_cast<double>(rows->integer(0, 17)) / 1e6;
  return facts;
}

Result<TableFacts> read_table_facts(pg::Session& session, const pg::TableName& table) {
  pg::Params params;
  params.text(table.quoted()).text(source_of(table));
  const auto rows =
      session.exec(pg::fill_template(sql::queries::check_table,
                                     {{"schema", table.quoted_schema()}, {"table", table.quoted()}}),
                   params);
  if (!rows) return failure(rows.error());
  TableFacts facts;
  const auto migrations =
      session.exec(pg::fill_template(sql::queries::check_migrations, {{"schema", table.quoted_schema()}}));
  if (!migrations) return failure(migrations.error());
  for (int i = 0; i < migrations->size(); ++i)
    facts.migrations[std::string(migrations->text(i, 0))] = migrations->integer(i, 1);
  facts.sequence_cache = integer_or(*rows, 0, 0);
  facts.indexes_missing = text_or_empty(*rows, 1);
  facts.wakes = rows->integer(0, 2) > 0;
  facts.unvacuumed = text_or_empty(*rows, 3);
  facts.lanes_leased = integer_or(*rows, 4, 0);
  facts.dead = rows->integer(0, 5);
  facts.holds = rows->integer(0, 6);
  pg::Params name;
  name.text(table.quoted());
  const auto storage = session.exec(sql::queries::survey_storage, name);
  if (!storage) return failure(storage.error());
  SurveyFacts survey;
  read_storage(*storage, survey);
  facts.partitions_ahead = survey.partitions_ahead;
  facts.default_partition_bytes = survey.default_partition_bytes;
  return facts;
}

Result<std::optional<ShortestMemory>> read_shortest_memory(pg::Session& session, const pg::TableName& table) {
  const auto rows =
      session.exec(pg::fill_template(sql::queries::check_consumers, {{"schema", table.quoted_schema()}}));
  if (!rows && rows.error().code == "42P01")
    return std::optional<ShortestMemory>{};  // no consumer's tables here
  if (!rows) return failure(rows.error());
  if (rows->empty()) return std::optional<ShortestMemory>{};
  return std::optional{ShortestMemory{std::string{rows->text(0, 0)}, Millis{rows->integer(0, 1)}}};
}

Result<std::vector<WaitingTopic>> read_waiting_topics(pg::Session& session, const pg::TableName& table) {
  pg::Params params;
  params.text(source_of(table));
  const auto rows =
      session.exec(pg::fill_template(sql::queries::check_topics,
                                     {{"schema", table.quoted_schema()}, {"table", table.quoted()}}),
                   params);
  if (!rows) return failure(rows.error());
  std::vector<WaitingTopic> out;
  out.reserve(static_cast<std::size_t>(rows->size()));
  for (int i = 0; i < rows->size(); ++i)
    out.push_back({.topic = std::string(rows->text(i, 0)),
                   .rows = rows->integer(i, 1),
                   .largest_body = rows->integer(i, 2),
                   .pinned = static_cast<std::int32_t>(rows->integer(i, 3))});
  return out;
}

}  // namespace outbox::relay
