#pragma once
// Brings a database to the version this program knows, and prints the SQL of it for a DBA who would rather do
// it by hand. What is applied are sets of migrations (migration_sets.hpp). Each migration is one transaction
// that also records its set, number, name and checksum; what is recorded is never run again. Place: behind
// `outboxd migrate`; tests, demo and benchmarks link it alone. Any thread; blocks on the session.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "pg/identifier.hpp"
#include "pg/session.hpp"
#include "relay/commands/migrate/migration_sets.hpp"

namespace outbox::relay {

/// What a message's body is stored as. Chosen when the table is made; bytea alone takes any bytes.
enum class BodyType { json, jsonb, text, bytea };
[[nodiscard]] std::string_view to_string(BodyType type) noexcept;
[[nodiscard]] std::optional<BodyType> parse_body_type(std::string_view name) noexcept;

struct MigrateOptions {
  pg::TableName table{"public", "outbox_msg"};  ///< everything is made in its schema, so a schema holds one
                                                ///< outbox; the set "outbox" makes it
  BodyType body_type = BodyType::json;
  int days_ahead = 7;               ///< daily partitions made ahead; 0 to 366
  std::vector<std::string> only{};  ///< these sets; empty: those that are applied by default
  std::vector<std::string> with{};  ///< and these
  Millis lock_patience{30'000};     ///< for locks of tables in use, each asked for 100 ms at a time
  const MigrationSets* known =
      nullptr;  ///< not the program's own: for tests of the machinery; nullptr: migration_sets()
};

/// The sets that `options` name, and those that every set needs, in the order in which they are applied.
/// Errors: a name that is none: fatal, with the names that are.
[[nodiscard]] Result<std::vector<const MigrationSet*>> chosen_sets(const MigrateOptions& options);

struct MigrateReport {
  struct Set {
    std::string name;
    int before = 0;  ///< 0: there was nothing
    int after = 0;   ///< another migrator at the same time may have applied some of the difference
  };
  std::vector<Set> sets;             ///< those of the call, in order
  std::vector<std::string> applied;  ///< "outbox/lanes": the migrations this call applied, in order
  int partitions_made = 0;
  bool days_left_out =
      false;  ///< the DEFAULT partition holds too many rows of them to move beside the traffic
};

/// Shape: idempotent; a second caller at the same time waits (30 s at most) and then finds nothing left to
/// do. Errors: a lock could not be had within lock_patience: retry. fatal: no such set; the database is newer than this
/// program; a recorded migration has another checksum; the schema holds another outbox table or another body
/// type; no privilege; server older than 15. What earlier migrations of the call did stays. Source:
/// sql/migrations, sql/queries/migrate_*.sql
[[nodiscard]] Result<MigrateReport> migrate(pg::Session& session, const MigrateOptions& options);

/// The script that migrate() would run on an empty database, version records included: after it has been
/// applied by hand, migrate() finds nothing to do. Errors: a name that can't be used in it: fatal.
[[nodiscard]] Result<std::string> render(const MigrateOptions& options);

/// The roles and their grants (grants.sql of each set), as a script; apply_grants() runs it.
/// Errors: fatal: as render(); the session's role may not create roles.
[[nodiscard]] Result<std::string> render_grants(const MigrateOptions& options);
[[nodiscard]] Status apply_grants(pg::Session& session, const MigrateOptions& options);

}  // namespace outbox::relay
