#include "relay/postgres/source_facts.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "sql/queries/relay.hpp"

namespace outbox::relay {
namespace {

constexpr std::array columns_needed{
    "id",         "msg_id",       "topic",      "msg_key",         "body",        "body_bytes",
    "headers",    "status",       "created_at", "shard",           "generation",  "attempts",
    "last_error", "available_at", "sent_at",    "kafka_partition", "kafka_offset"};

constexpr std::array<std::pair<std::string_view, BodyColumn>, 4> body_types{{{"json", BodyColumn::json},
                                                                             {"jsonb", BodyColumn::jsonb},
                                                                             {"text", BodyColumn::text},
                                                                             {"bytea", BodyColumn::bytea}}};

auto missing(std::string what) {
  return failure(Disposition::fatal, std::move(what), "42P01",
                 "create it with `outboxd migrate`, or name another one with source.table");
}

Status check_found(std::string_view kind, const std::string& name, std::string_view is) {
  if (kind == "server" && is == "standby") {
    return failure(Disposition::fatal, "the server is a standby, it cannot record what was sent", "25006",
                   "let postgres.uri name the primary, or add target_session_attrs=primary");
  }
  if (kind == "encoding" && name != "UTF8") {
    return failure(
        Disposition::fatal,
        "the database's encoding is " + name + ": it must be UTF8, which is what Kafka gets", "22P05",
        "make a database of that encoding (createdb -T template0 -E UTF8) and move what is in this "
        "one there");
  }
  if (kind == "guarded") {
    return failure(Disposition::fatal,
                   "row level security is on for \"" + name +
                       "\", and this role is subject to it: rows may be hidden from the relay",
                   "42501", "ALTER ROLE … BYPASSRLS, or ALTER TABLE … DISABLE ROW LEVEL SECURITY");
  }
  if (kind == "schema" && is.empty()) return missing("there is no schema \"" + name + "\"");
  return {};
}

Status check_allowed(std::string_view kind, const std::string& name,
                     const std::optional<std::string_view>& lacks) {
  if (!lacks) return {};
  return failure(
      Disposition::fatal,
      "the role may not use " + std::string(kind) + " \"" + name + "\": it lacks " + std::string(*lacks),
      "42501", "`outboxd migrate --grants` gives the relay its rights");
}

Result<BodyColumn> body_type(std::string_view type, const pg::TableName& table) {
  const auto* known = std::ranges::find(body_types, type, &std::pair<std::string_view, BodyColumn>::first);
  if (known != body_types.end()) return known->second;
  return failure(Disposition::fatal, "column body of " + table.quoted() + " is of type " + std::string(type),
                 "42804", "it must be json, jsonb, text or bytea");
}

using Columns = std::map<std::string, std::string, std::less<>>;  // name to type

Status check_columns(const Columns& columns, const pg::TableName& table) {
  for (const std::string_view needed : columns_needed) {
    if (columns.contains(needed)) continue;
    return failure(Disposition::fatal, table.quoted() + " has no column " + std::string(needed), "42703",
                   "`outboxd migrate` brings the table up to date");
  }
  return {};
}

Status check_partition_column(const Columns& columns, const pg::TableName& table, const std::string& name) {
  if (name.empty()) return {};
  const std::string which =
      "column \"" + name + "\" of " + table.quoted() + ", which source.partition_column names,";
  if (std::ranges::find(columns_needed, name) != columns_needed.end())
    return failure(Disposition::fatal, which + " is outboxd's own", "42701",
                   "name one that was added for it: ALTER TABLE " + table.quoted() + " ADD COLUMN … int");
  const auto column = columns.find(name);
  if (column == columns.end())
    return failure(Disposition::fatal, which + " is missing", "42703",
                   "ALTER TABLE " + table.quoted() + " ADD COLUMN … int, or correct the name");
  if (column->second != "int4" && column->second != "int2")
    return failure(Disposition::fatal, which + " is of type " + column->second, "42804",
                   "it must be integer or smallint");
  return {};
}

}  // namespace

Result<SourceFacts> read_facts(const pg::Rows& rows, const pg::TableName& table,
                               const std::string& partition_column) {
  SourceFacts facts;
  Columns columns;
  for (int row = 0; row < rows.size(); ++row) {
    const std::string_view kind = rows.text(row, 0);
    const std::string name(rows.text(row, 1));
    const std::string_view is = rows.text_or_null(row, 2).value_or("");
    if (auto found = check_found(kind, name, is); !found) return failure(found.error());
    if (kind == "relation" && is.empty()) {
      return missing("there is no table " + pg::TableName{table.schema, name}.quoted());
    }
    if (auto allowed = check_allowed(kind, name, rows.text_or_null(row, 3)); !allowed)
      return failure(allowed.error());
    if (kind == "server") facts.server = name;
    if (kind == "numbering") facts.transaction_first = is == "transaction_first";
    if (kind != "column") continue;
    columns.emplace(name, is);
    if (name != "body") continue;
    const auto body = body_type(is, table);
    if (!body) return failure(body.error());
    facts.body = *body;
  }
  if (Status found = check_columns(columns, table); !found) return failure(found.error());
  if (Status fit = check_partition_column(columns, table, partition_column); !fit)
    return failure(fit.error());
  return facts;
}

Result<SourceFacts> inspect(pg::Session& session, const pg::TableName& table,
                            const std::string& partition_column) {
  pg::Params params;
  params.text(table.schema).text(table.table);
  const auto rows = session.exec(sql::queries::source_inspect, params, pg::Format::text);
  if (!rows) return failure(rows.error());
  return read_facts(*rows, table, partition_column);
}

}  // namespace outbox::relay
