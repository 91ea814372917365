#include "relay/commands/migrate/migrate.hpp"

#include <array>
#include <utility>

#include "relay/commands/migrate/migration_script.hpp"
#include "sql/queries/migrate.hpp"

namespace outbox::relay {
namespace {

constexpr std::array<std::pair<BodyType, std::string_view>, 4> body_types{{
    {BodyType::json, "json"},
    {BodyType::jsonb, "jsonb"},
    {BodyType::text, "text"},
    {BodyType::bytea, "bytea"},
}};

Status check_recorded(int version, std::string_view name, std::string_view checksum) {
  const auto& known = migrations();
  if (version > static_cast<int>(known.size())) {
    return failure(Disposition::fatal,
                   "the database has migration " + std::to_string(version) + " (" + std::string(name) +
                       "), this program knows " + std::to_string(known.size()),
                   {}, "use an outboxd at least as new as the one that migrated it");
  }
  const Migration& ours = known[static_cast<std::size_t>(version - 1)];
  if (ours.checksum == checksum) return {};
  return failure(
      Disposition::fatal,
      "migration " + std::to_string(version) + " (" + std::string(name) + ") was applied with checksum " +
          std::string(checksum) + ", this program has " + std::string(ours.checksum),
      {},
      "the database was made by another build: migrate with that one, or compare `outboxd migrate --print` "
      "with the database and, if they agree, set the checksum in outbox_migration");
}

// How far the database is: the highest version recorded, all of them being ours.
Result<int> version_of(pg::Session& session, const MigrationScript& script) {
  const auto rows = session.exec(script.applied());
  if (!rows) return failure(rows.error());
  int version = 0;
  for (int i = 0; i < rows->size(); ++i) {
    version = static_cast<int>(rows->integer(i, 0));
    const Status same = check_recorded(version, rows->text(i, 1), rows->text(i, 2));
    if (!same) return failure(same.error());
  }
  return version;
}

Status check_table(pg::Session& session, const MigrateOptions& options) {
  const auto rows = session.exec(sql::queries::migrate_table, pg::Params{}.text(options.table.schema));
  if (!rows) return failure(rows.error());
  if (rows->empty()) {
    return failure(
        Disposition::fatal,
        "the schema " + options.table.quoted_schema() + " was migrated, but its outbox table is gone", {},
        "restore the table, or drop the schema's outbox_migration table to begin again");
  }
  if (rows->text(0, 0) != options.table.table) {
    return failure(Disposition::fatal,
                   "the schema " + options.table.quoted_schema() + " holds the outbox table '" +
                       std::string(rows->text(0, 0)) + "', not '" + options.table.table + "'",
                   {}, "a schema holds one outbox: name that table, or use another schema");
  }
  if (rows->text(0, 1) != to_string(options.body_type)) {
    return failure(Disposition::fatal,
                   options.table.quoted() + " keeps bodies as " + std::string(rows->text(0, 1)) +
                       ", not as " + std::string(to_string(options.body_type)),
                   {}, "leave the body type as it is; another one needs a table of its own");
  }
  return {};
}

// One transaction: the first migration that is still missing, if there is one.
Result<bool> apply_next(pg::Session& session, const MigrationScript& script, const MigrateOptions& options,
                        MigrateReport& report) {
  bool applied = false;
  const Status done = session.transaction([&](pg::Session& s) -> Status {
    if (Status begun = s.exec_script(script.begin()); !begun) return begun;
    const auto version = version_of(s, script);
    if (!version) return failure(version.error());
    if (*version > 0) {
      if (Status fits = check_table(s, options); !fits) return fits;
    }
    report.version_after = *version;
    if (report.version_before < 0) report.version_before = *version;
    if (static_cast<std::size_t>(*version) == migrations().size()) return {};
    const Migration& next = migrations()[static_cast<std::size_t>(*version)];
    applied = true;
    if (Status stepped = s.exec_script(script.step(next)); !stepped) return stepped;
    return s.exec_script(script.record(next));
  });
  if (!done) return failure(done.error());
  if (applied)
    report.applied.emplace_back(migrations()[static_cast<std::size_t>(report.version_after++)].name);
  return applied;
}

}  // namespace

std::string_view to_string(BodyType type) noexcept {
  for (const auto& [value, name] : body_types) {
    if (value == type) return name;
  }
  return "json";
}

std::optional<BodyType> parse_body_type(std::string_view text) noexcept {
  for (const auto& [value, name] : body_types) {
    if (name == text) return value;
  }
  return std::nullopt;
}

Result<MigrateReport> migrate(pg::Session& session, const MigrateOptions& options) {
  const auto script = MigrationScript::of(options);
  if (!script) return failure(script.error());
  MigrateReport report;
  report.version_before = -1;
  Result<bool> applied = true;
  while (*applied) {
    applied = apply_next(session, *script, options, report);
    if (!applied) return failure(applied.error());
  }
  const auto made = session.exec(script->partitions());
  if (!made) return failure(made.error());
  report.partitions_made = static_cast<int>(made->integer(0, 0));
  return report;
}

Result<std::string> render(const MigrateOptions& options) {
  const auto script = MigrationScript::of(options);
  if (!script) return failure(script.error());
  std::string out = "-- Printed by outboxd migrate --print. For psql -v ON_ERROR_STOP=1 -f, or any client.\n";
  for (const Migration& migration : migrations()) {
    out += "\nBEGIN;\n" + script->begin() + "\n" + script->step(migration) + "\n" + script->record(migration);
    out += ";\nCOMMIT;\n";
  }
  return out + "\n" + script->partitions() + ";\n";
}

Result<std::string> render_grants(const pg::TableName& table) {
  const auto script = MigrationScript::of(MigrateOptions{table});
  if (!script) return failure(script.error());
  return script->grants();
}

Status apply_grants(pg::Session& session, const pg::TableName& table) {
  const auto text = render_grants(table);
  if (!text) return failure(text.error());
  return session.transaction([&](pg::Session& s) { return s.exec_script(*text); });
}

}  // namespace outbox::relay
