#pragma once
// The sets of migrations that this program has. A set is one folder of sql/migrations and one row of the
// table in migration_sets.cpp: its numbered files are applied in order, its grants.sql by `--grants`. Sets
// are applied in the order of that table, so a set may build on what stands before it. Plain data; any
// thread.

#include <string>
#include <string_view>
#include <vector>

namespace outbox::relay {

/// One numbered file of a set.
struct Migration {
  int number = 0;             ///< 1, 2, 3 … within its set
  std::string_view name;      ///< "lanes" of outbox/0002_lanes.sql
  std::string_view checksum;  ///< of the file as it is in sql/migrations, before it is filled in
  std::string_view text;
};

enum class SetUse {
  always,      ///< every other set builds on it
  by_default,  ///< unless `--only` names others
  optional,    ///< where `--with` or `--only` names it
};

struct MigrationSet {
  std::string_view name;  ///< the folder's
  SetUse use = SetUse::by_default;
  std::vector<Migration> migrations;  ///< by number, without a gap
  std::string_view grants{};          ///< its roles and what they may do; empty: none
};

using MigrationSets = std::vector<MigrationSet>;

/// Every set, in the order in which they are applied.
[[nodiscard]] const MigrationSets& migration_sets();

/// "outbox and consumer (unless --only names others), requests": the sets that can be named.
[[nodiscard]] std::string names_of(const MigrationSets& sets);

}  // namespace outbox::relay
