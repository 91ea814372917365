#pragma once
// A view over the outbox table that has the name and the columns which an application writes already, so that
// its INSERTs stay as they are while the relay keeps its one layout. Place: behind `outboxd migrate --view`.
// Any thread; blocks on the session.

#include <string>
#include <string_view>
#include <vector>

#include "relay/commands/migrate/migrate.hpp"

namespace outbox::relay {

enum class ViewTarget { column, header };
enum class ViewType {
  as_target,  ///< the type of the table's column; of a header: text
  text,       ///< what an application keeps as text: cast at the insert, refused where it does not fit
};

struct ViewColumn {
  std::string name;  ///< of the view, unquoted
  ViewType type = ViewType::as_target;
  ViewTarget kind = ViewTarget::column;
  std::string target;  ///< the table's column, unquoted, or the header's name
};
/// Shape: `NAME=COLUMN`, `NAME=header:HEADER`, `NAME:text=COLUMN`; names as in SQL. Errors: fatal: no such.
[[nodiscard]] Result<ViewColumn> parse_view_column(std::string_view text);

struct View {
  pg::TableName name;
  std::vector<ViewColumn> columns;
  std::string topic{};  ///< of every row, where no column is the topic
};
/// Errors: fatal: topic or body is missing, something is named twice, a column is outboxd's to write, a type
/// that cannot be had without loss.
[[nodiscard]] Status check_view(const View& view, BodyType body);

/// The script that makes it. Errors: fatal: as check_view(), or a name that cannot be used in it.
[[nodiscard]] Result<std::string> render_view(const View& view, const MigrateOptions& options);
/// INSERT for outbox_app, as a script. Errors: as above.
[[nodiscard]] Result<std::string> render_view_grants(const View& view);

enum class ViewChange { none, made, replaced };
/// Shape: idempotent. A view that was made by another mapping is replaced in one transaction, its grants
/// kept; inserts wait meanwhile. Errors: as render_view(); fatal: something else has that name; the table has
/// no such column; no right. retry: a lock could not be had in time. Source:
/// sql/queries/migrate/migrate_view*.sql
[[nodiscard]] Result<ViewChange> make_view(pg::Session& session, const View& view,
                                           const MigrateOptions& options);

}  // namespace outbox::relay
