#pragma once
// What commands that change many rows have in common: who and why, kept in outbox_operation, and batches at
// a rate, each a transaction of its own. An interrupted one has done what it said so far, and can be run
// again. Blocks; thread: main.

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "pg/identifier.hpp"
#include "pg/rows.hpp"
#include "pg/session.hpp"

namespace CLI {
class App;
}

namespace outbox::commands {

struct Because {
  std::string reason{};
  std::string by{};  ///< empty: person()
  [[nodiscard]] std::string who() const;
};
/// `--reason WHY`, which must say something, and `--by NAME`.
void declare_because(CLI::App& command, Because& because);

/// Shape: notes that an operation begins, with its details as JSON; its number.
/// Errors: as pg::Session; where the function is missing, with what to do.
[[nodiscard]] Result<std::int64_t> begin_operation(pg::Session& session, const std::string& quoted_schema,
                                                   const std::string& action, const std::string& detail,
                                                   const Because& because);

/// Runs `batch` with how many rows it may take at the most, until it answers with fewer; rows in all.
/// Units: rows a second.
[[nodiscard]] Result<std::int64_t> in_batches(int rate,
                                              const std::function<Result<int>(int rows_max)>& batch);

/// An error that says what to do where the database is older than the program.
[[nodiscard]] Error with_migrate_advice(Error error);

}  // namespace outbox::commands
