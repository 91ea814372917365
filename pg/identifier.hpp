#pragma once
// Names in SQL. A name from outside becomes a quoted identifier, never pasted text.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace outbox::pg {

/// `name` in double quotes, inner quotes doubled. Errors: empty, over 63 bytes, or containing NUL: fatal.
[[nodiscard]] Result<std::string> quote_identifier(std::string_view name);

/// A table's name as people write it: `public.outbox_msg`, `"My.Schema"."Out""box"`, `outbox_msg`. Unquoted
/// parts are folded to lower case, as PostgreSQL does. Errors: more than two parts, an open quote, an empty
/// part: fatal.
struct TableName {
  std::string schema;  ///< unquoted; "public" where none was given
  std::string table;   ///< unquoted
  friend bool operator==(const TableName&, const TableName&) = default;
  [[nodiscard]] std::string quoted() const;  ///< "schema"."table"
  [[nodiscard]] std::string quoted_schema() const;
};
[[nodiscard]] Result<TableName> parse_table_name(std::string_view text);

/// One name as people write it: `shelf`, `"My Shelf"`; folded as a table's parts. Errors: as there.
[[nodiscard]] Result<std::string> parse_name(std::string_view text);

/// `text` as a literal of SQL that reads the same whatever standard_conforming_strings says.
[[nodiscard]] std::string quote_literal(std::string_view text);

/// Fills a template of sql/: each `{{name}}` becomes the value given for `name`, which must already be
/// quoted. An unknown or unused name breaks an invariant and aborts: templates and their values are both
/// ours.
[[nodiscard]] std::string fill_template(std::string_view sql,
                                        const std::map<std::string, std::string>& names);

}  // namespace outbox::pg
