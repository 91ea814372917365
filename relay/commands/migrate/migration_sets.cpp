#include "relay/commands/migrate/migration_sets.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/check.hpp"
#include "sql/migrations.hpp"

namespace outbox::relay {
namespace {

// The one row that a set needs beside its folder. In the order in which they are applied.
constexpr std::array<std::pair<std::string_view, SetUse>, 4> rows{{
    {"shared", SetUse::always},
    {"outbox", SetUse::by_default},
    {"consumer", SetUse::by_default},
    {"requests", SetUse::optional},
}};

void add(MigrationSet& set, const sql::migrations::File& file) {
  const std::string_view name = file.name.substr(set.name.size() + 1);
  if (name == "grants") {
    set.grants = file.text;
    return;
  }
  Migration migration{0, name.substr(name.find('_') + 1), file.sha256, file.text};
  std::from_chars(name.data(), name.data() + name.size(), migration.number);
  set.migrations.push_back(migration);
  OUTBOX_CHECK(migration.number == static_cast<int>(set.migrations.size()),
               "migrations of a set are numbered without a gap");
}

MigrationSets read() {
  MigrationSets sets;
  for (const auto& [name, use] : rows) sets.push_back({name, use, {}, {}});
  for (const auto& file : sql::migrations::all()) {
    const auto set = std::ranges::find(sets, file.name.substr(0, file.name.find('/')), &MigrationSet::name);
    OUTBOX_CHECK(set != sets.end(), "each folder of sql/migrations is a set of the table");
    add(*set, file);
  }
  return sets;
}

}  // namespace

const MigrationSets& migration_sets() {
  static const MigrationSets all = read();
  return all;
}

std::string names_of(const MigrationSets& sets) {
  std::string by_default;
  std::string optional;
  for (const MigrationSet& set : sets) {
    if (set.use == SetUse::by_default)
      by_default += (by_default.empty() ? "" : " and ") + std::string(set.name);
    if (set.use == SetUse::optional) optional += ", " + std::string(set.name);
  }
  return by_default + " (unless --only names others)" + optional;
}

}  // namespace outbox::relay
