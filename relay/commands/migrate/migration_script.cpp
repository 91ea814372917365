#include "relay/commands/migrate/migration_script.hpp"

#include "sql/queries/migrate.hpp"

namespace outbox::relay {
namespace {

using pg::quote_literal;

// bytea as text is hex or escapes, at the session's choice; the others have one text form.
std::string_view octets(BodyType type) {
  return type == BodyType::bytea ? "octet_length(body)" : "octet_length(body::text)";
}

}  // namespace

Result<MigrationScript> MigrationScript::of(const MigrateOptions& options) {
  const auto& [schema, table] = options.table;
  if ((schema + "." + table).find(sql_body_quote) != std::string::npos) {
    return failure(Disposition::fatal,
                   "a table's or schema's name must not contain " + std::string(sql_body_quote));
  }
  return MigrationScript(
      Names{{"schema", options.table.quoted_schema()},
            {"schema_literal", quote_literal(schema)},
            {"table", options.table.quoted()},
            {"asleep_literal", quote_literal(options.table.quoted_schema() + ".outbox_asleep")},
            {"table_literal", quote_literal(options.table.quoted())},
            {"table_name_literal", quote_literal(table)},
            {"source", quote_literal(schema + "." + table)},
            {"body_type", std::string(to_string(options.body_type))},
            {"body_octets", std::string(octets(options.body_type))},
            {"days_ahead", std::to_string(options.days_ahead)}});
}

std::string MigrationScript::fill(std::string_view text, const Names& more) const {
  Names used;
  for (const Names* names : {&names_, &more}) {
    for (const auto& name : *names) {
      if (text.find("{{" + name.first + "}}") != std::string_view::npos) used.insert(name);
    }
  }
  return pg::fill_template(text, used);
}

std::string MigrationScript::begin() const {
  return fill(sql::queries::migrate_begin);
}
std::string MigrationScript::applied() const {
  return fill(sql::queries::migrate_applied);
}
std::string MigrationScript::step(const Migration& migration) const {
  return fill(migration.text);
}
std::string MigrationScript::record(const MigrationSet& set, const Migration& migration) const {
  return fill(sql::queries::migrate_record, {{"set", quote_literal(set.name)},
                                             {"number", std::to_string(migration.number)},
                                             {"name", quote_literal(migration.name)},
                                             {"checksum", quote_literal(migration.checksum)}});
}
std::string MigrationScript::partitions() const {
  return fill(sql::queries::migrate_partitions);
}
std::string MigrationScript::partitions_all() const {
  return fill(sql::queries::migrate_partitions_all);
}
std::string MigrationScript::grants(const MigrationSet& set) const {
  return fill(set.grants);
}

}  // namespace outbox::relay
