#include "relay/commands/migrate/migrate.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "relay/commands/migrate/lock_patience.hpp"
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

using Chosen = std::vector<const MigrationSet*>;
using Versions = std::map<std::string, int, std::less<>>;

const MigrationSets& known_sets(const MigrateOptions& options) {
  return options.known != nullptr ? *options.known : migration_sets();
}

std::string full_name(std::string_view set, std::string_view name) {
  return std::string(set) + "/" + std::string(name);
}

Status check_recorded(const MigrationSet& set, int number, std::string_view name, std::string_view checksum) {
  const std::string recorded =
      "migration " + std::to_string(number) + " of " + std::string(set.name) + " (" + std::string(name) + ")";
  if (number > static_cast<int>(set.migrations.size())) {
    return failure(
        Disposition::fatal,
        "the database has " + recorded + ", this program knows " + std::to_string(set.migrations.size()), {},
        "use an outboxd at least as new as the one that migrated it");
  }
  const Migration& ours = set.migrations[static_cast<std::size_t>(number - 1)];
  if (ours.checksum == checksum) return {};
  return failure(
      Disposition::fatal,
      recorded + " was applied with checksum " + std::string(checksum) + ", this program has " +
          std::string(ours.checksum),
      {},
      "the database was made by another build: migrate with that one, or compare `outboxd migrate --print` "
      "with the database and, if they agree, set the checksum in outbox_migration");
}

// How far the database is: of each set the highest number recorded, all of them being ours.
Result<Versions> versions_of(pg::Session& session, const MigrationScript& script, const Chosen& sets) {
  const auto rows = session.exec(script.applied());
  if (!rows) return failure(rows.error());
  Versions versions;
  for (int i = 0; i < rows->size(); ++i) {
    const auto set = std::ranges::find(sets, rows->text(i, 0), [](const auto* s) { return s->name; });
    if (set == sets.end()) continue;
    const int number = static_cast<int>(rows->integer(i, 1));
    const Status same = check_recorded(**set, number, rows->text(i, 2), rows->text(i, 3));
    if (!same) return failure(same.error());
    versions[std::string((*set)->name)] = number;
  }
  return versions;
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

struct Next {
  const MigrationSet* set = nullptr;
  const Migration* migration = nullptr;
};

// nullopt: none is missing.
std::optional<Next> next_of(const Versions& versions, const Chosen& sets) {
  for (const MigrationSet* set : sets) {
    const auto found = versions.find(set->name);
    const auto number = static_cast<std::size_t>(found == versions.end() ? 0 : found->second);
    if (number < set->migrations.size()) return Next{set, &set->migrations[number]};
  }
  return std::nullopt;
}

void note(MigrateReport& report, const Versions& versions) {
  for (MigrateReport::Set& set : report.sets) {
    const auto found = versions.find(set.name);
    set.after = found == versions.end() ? 0 : found->second;
    if (set.before < 0) set.before = set.after;
  }
}

// One transaction: the first migration that is still missing, if there is one.
Result<bool> apply_next(pg::Session& session, const MigrationScript& script, const MigrateOptions& options,
                        const Chosen& sets, MigrateReport& report) {
  std::optional<Next> next;
  const Status done = session.transaction([&](pg::Session& s) -> Status {
    if (Status begun = s.exec_script(script.begin()); !begun) return begun;
    const auto versions = versions_of(s, script, sets);
    if (!versions) return failure(versions.error());
    if (versions->contains("outbox")) {
      if (Status fits = check_table(s, options); !fits) return fits;
    }
    note(report, *versions);
    next = next_of(*versions, sets);
    if (!next) return {};
    if (Status stepped = s.exec_script(script.step(*next->migration)); !stepped) return stepped;
    return s.exec_script(script.record(*next->set, *next->migration));
  });
  if (!done) return failure(done.error());
  if (next) report.applied.push_back(full_name(next->set->name, next->migration->name));
  return next.has_value();
}

// One a transaction, so that no lock is waited for while one is held.
Status make_partitions(pg::Session& session, const MigrationScript& script, const MigrateOptions& options,
                       MigrateReport& report) {
  return with_patience(options.lock_patience, [&]() -> Status {
    for (std::int64_t made = 1; made > 0;) {
      const auto rows = session.exec(script.partitions());
      if (!rows) return failure(rows.error());
      made = rows->integer(0, 0);
      report.partitions_made += made > 0 ? 1 : 0;
      report.days_left_out = made < 0;
    }
    return {};
  });
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

Result<std::vector<const MigrationSet*>> chosen_sets(const MigrateOptions& options) {
  const MigrationSets& known = known_sets(options);
  for (const auto* names : {&options.only, &options.with}) {
    for (const std::string& name : *names) {
      if (std::ranges::find(known, name, &MigrationSet::name) != known.end()) continue;
      return failure(Disposition::fatal, "there is no set of migrations '" + name + "'", {},
                     "the sets are: " + names_of(known));
    }
  }
  const auto named = [](const std::vector<std::string>& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  std::vector<const MigrationSet*> out;
  for (const MigrationSet& set : known) {
    const bool unasked = set.use == SetUse::by_default && options.only.empty();
    if (set.use == SetUse::always || unasked || named(options.only, set.name) ||
        named(options.with, set.name))
      out.push_back(&set);
  }
  return out;
}

Result<MigrateReport> migrate(pg::Session& session, const MigrateOptions& options) {
  const auto script = MigrationScript::of(options);
  if (!script) return failure(script.error());
  const auto sets = chosen_sets(options);
  if (!sets) return failure(sets.error());
  MigrateReport report;
  for (const MigrationSet* set : *sets) report.sets.push_back({std::string(set->name), -1, 0});
  Result<bool> applied = true;
  while (*applied) {
    const Status stepped = with_patience(options.lock_patience, [&]() -> Status {
      applied = apply_next(session, *script, options, *sets, report);
      return applied ? Status{} : failure(applied.error());
    });
    if (!stepped) return failure(stepped.error());
  }
  if (Status made = make_partitions(session, *script, options, report); !made) return failure(made.error());
  return report;
}

Result<std::string> render(const MigrateOptions& options) {
  const auto script = MigrationScript::of(options);
  if (!script) return failure(script.error());
  const auto sets = chosen_sets(options);
  if (!sets) return failure(sets.error());
  std::string out = "-- Printed by outboxd migrate --print. For psql -v ON_ERROR_STOP=1 -f, or any client.\n";
  for (const MigrationSet* set : *sets) {
    for (const Migration& migration : set->migrations) {
      out += "\nBEGIN;\n" + script->begin() + "\n" + script->step(migration) + "\n" +
             script->record(*set, migration);
      out += ";\nCOMMIT;\n";
    }
  }
  return out + "\n" + script->partitions_all() + ";\n";
}

Result<std::string> render_grants(const MigrateOptions& options) {
  const auto script = MigrationScript::of(options);
  if (!script) return failure(script.error());
  const auto sets = chosen_sets(options);
  if (!sets) return failure(sets.error());
  std::string out;
  for (const MigrationSet* set : *sets) out += script->grants(*set);
  return out;
}

Status apply_grants(pg::Session& session, const MigrateOptions& options) {
  const auto text = render_grants(options);
  if (!text) return failure(text.error());
  return with_patience(options.lock_patience, [&] {
    return session.transaction(
        [&](pg::Session& s) { return s.exec_script("SET LOCAL lock_timeout = '100ms';\n" + *text); });
  });
}

}  // namespace outbox::relay
