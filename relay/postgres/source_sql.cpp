#include "relay/postgres/source_sql.hpp"

#include <map>
#include <string_view>

#include "base/check.hpp"
#include "sql/queries/relay.hpp"

namespace outbox::relay {
namespace {

namespace queries = sql::queries;

Sql fill(std::string_view text, const std::map<std::string, std::string>& names = {}) {
  return std::make_shared<const std::string>(pg::fill_template(text, names));
}

// jsonb's own binary form starts with a version byte; the other types go out as they are stored.
std::string body_column(BodyColumn body) {
  return body == BodyColumn::jsonb ? "m.body::text" : "m.body";
}

std::string partition_value(const std::string& column) {
  if (column.empty()) return "NULL::int";
  const auto quoted = pg::quote_identifier(column);
  OUTBOX_CHECK(quoted.has_value(), "the table was found to have the column");
  return "m." + *quoted;
}

}  // namespace

SourceSql::SourceSql(const pg::TableName& table, BodyColumn body, const std::string& partition_column) {
  const std::pair<const std::string, std::string> in_schema{"schema", table.quoted_schema()};
  const std::pair<const std::string, std::string> in_table{"table", table.quoted()};
  const std::pair<const std::string, std::string> as_body{"body", body_column(body)};
  const std::pair<const std::string, std::string> as_partition{"partition",
                                                               partition_value(partition_column)};

  settings = fill(queries::source_settings);
  claim_begin = fill(queries::source_claim_begin);
  claim_by_shard = fill(queries::source_claim_by_shard, {in_schema, in_table, as_body, as_partition});
  claim_flat = fill(queries::source_claim_flat, {in_schema, in_table, as_body, as_partition});
  claim_flat_above = fill(queries::source_claim_flat_above, {in_schema, in_table, as_body, as_partition});
  claim_due = fill(queries::source_claim_due, {in_schema, in_table, as_body, as_partition});
  claim_end = fill(queries::source_claim_end, {in_schema, in_table});
  mark_settings = fill(queries::source_mark_settings);
  mark_look = fill(queries::source_mark_look, {in_table});
  mark_leases = fill(queries::source_mark_leases, {in_schema});
  mark_cancelled = fill(queries::source_mark_cancelled, {in_table});
  partition_names = fill(queries::source_partition_names);
  bury = fill(queries::source_bury, {in_schema, in_table});
  hold = fill(queries::source_hold, {in_schema});
  hold_lock = fill(queries::source_hold_lock, {in_schema, in_table});
  set_held = fill(queries::source_set_held, {in_schema, in_table});
  release = fill(queries::source_release, {in_schema});
  held_topics = fill(queries::source_held_topics, {in_schema});
  lease = fill(queries::source_lease, {in_schema});
  give_back = fill(queries::source_give_back, {in_schema});
  pin = fill(queries::source_pin, {in_schema});
  pinned = fill(queries::source_pinned, {in_schema});
  repin = fill(queries::source_repin, {in_schema});
  asleep = fill(queries::source_asleep);
  ledger_join = fill(queries::source_ledger_join, {in_schema});
  ledger = fill(queries::source_ledger, {in_schema});
  ledger_settle = fill(queries::source_ledger_settle, {in_schema});
}

PartitionSql::PartitionSql(const pg::TableName& table, const std::string& quoted) {
  const std::map<std::string, std::string> names{{"partition", quoted}, {"schema", table.quoted_schema()}};
  mark = fill(queries::source_mark, names);
  erase = fill(queries::source_erase, names);
}

Sql inspect_sql() {
  return fill(queries::source_inspect);
}

}  // namespace outbox::relay
