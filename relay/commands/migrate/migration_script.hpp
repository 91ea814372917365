#pragma once
// The texts that migrate() runs and render() prints: templates of sql/, filled in for one table.

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "relay/commands/migrate/migrate.hpp"

namespace outbox::relay {

/// Stands around function bodies in sql/: no name that is filled in may contain it.
inline constexpr std::string_view sql_body_quote = "$outbox$";

/// Fills templates of sql/ for one table.
class MigrationScript {
 public:
  /// Errors: a name holds the marker that quotes function bodies: fatal.
  [[nodiscard]] static Result<MigrationScript> of(const MigrateOptions& options);

  [[nodiscard]] std::string begin() const;
  [[nodiscard]] std::string applied() const;
  [[nodiscard]] std::string step(const Migration& migration) const;
  [[nodiscard]] std::string record(const MigrationSet& set, const Migration& migration) const;
  [[nodiscard]] std::string partitions() const;      ///< one of them
  [[nodiscard]] std::string partitions_all() const;  ///< of tables that nobody uses yet
  [[nodiscard]] std::string grants(const MigrationSet& set) const;

 private:
  using Names = std::map<std::string, std::string>;
  explicit MigrationScript(Names names) : names_(std::move(names)) {}
  [[nodiscard]] std::string fill(std::string_view text, const Names& more = {}) const;

  Names names_;
};

}  // namespace outbox::relay
