#pragma once
// What an outbox table is: asked once after each connect, so that a missing table, column or privilege is one
// clear line at start and not an SQL error at the first claim. inspect() is for `outboxd run` before it
// becomes a daemon; PostgresSource asks the same query on its own connection and reads the answer with
// read_facts().

#include <memory>
#include <string>

#include "base/result.hpp"
#include "pg/identifier.hpp"
#include "pg/rows.hpp"
#include "pg/session.hpp"

namespace outbox::relay {

enum class BodyColumn { json, jsonb, text, bytea };

struct SourceFacts {
  BodyColumn body = BodyColumn::json;
  std::string server;  ///< version()
  /// A row's transaction has its number before the row draws its id: the table as `outboxd migrate` makes it.
  bool transaction_first = false;
  friend bool operator==(const SourceFacts&, const SourceFacts&) = default;
};

/// Shape: `partition_column` is where a row names its partition, unquoted; empty: nowhere.
/// Source: source_inspect.sql. Errors: fatal: the table, a column, a neighbour or a privilege is missing, the
/// body or the partition column is of another type, the latter is one of outboxd's own, the server is a
/// standby; each names what and how to mend it.
[[nodiscard]] Result<SourceFacts> read_facts(const pg::Rows& rows, const pg::TableName& table,
                                             const std::string& partition_column = {});

/// Blocks for one round trip. Errors: as read_facts, and what the session says.
[[nodiscard]] Result<SourceFacts> inspect(pg::Session& session, const pg::TableName& table,
                                          const std::string& partition_column = {});

}  // namespace outbox::relay
