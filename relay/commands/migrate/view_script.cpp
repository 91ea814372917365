#include "relay/commands/migrate/view_script.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "relay/commands/migrate/migration_script.hpp"
#include "sql/queries/migrate.hpp"

namespace outbox::relay {
namespace {

constexpr std::string_view view_revision =
    "1";  // another one: views are made again by the next migrate --view
constexpr std::array own_columns{"msg_id",  "topic",        "msg_key",   "body",
                                 "headers", "available_at", "created_at"};

using Pieces = std::vector<std::string>;

std::string joined(const Pieces& pieces, std::string_view between = ", ") {
  std::string out;
  for (const std::string& piece : pieces) {
    if (!out.empty()) out += between;
    out += piece;
  }
  return out;
}

std::string quoted(std::string_view name) {
  return pg::quote_identifier(name).value();
}

std::string given_in(const ViewColumn& column) {
  return "NEW." + quoted(column.name);
}

bool is(const ViewColumn& column, std::string_view target) {
  return column.kind == ViewTarget::column && column.target == target;
}

// As the view shows it.
std::string shown(const ViewColumn& column) {
  if (column.kind == ViewTarget::header) return "m.headers ->> " + pg::quote_literal(column.target);
  std::string stored = "m." + quoted(column.target);
  if (column.type == ViewType::text || column.target == "topic" || column.target == "msg_key")
    return stored + "::text";
  // The types beneath the domains: what a client is told is then what it was told by a table of its own.
  if (column.target == "headers") return stored + "::jsonb";
  if (column.target == "available_at" || column.target == "created_at") return stored + "::timestamptz";
  return stored;
}

std::string headers_of(const View& view) {
  Pieces pairs;
  std::string whole;
  for (const ViewColumn& column : view.columns) {
    if (column.kind == ViewTarget::header)
      pairs.push_back(pg::quote_literal(column.target) + ", " + given_in(column));
    if (is(column, "headers")) whole = "coalesce(" + given_in(column) + "::jsonb, '{}')";
  }
  const std::string single =
      pairs.empty() ? "" : "jsonb_strip_nulls(jsonb_build_object(" + joined(pairs) + "))";
  if (whole.empty() || single.empty()) return whole + single;
  return whole + " || " + single;
}

// What goes into the table. A column that is given stands here once: it may be an expression.
std::string stored(const ViewColumn& column, const MigrateOptions& options) {
  std::string given = given_in(column);
  const bool text = column.type == ViewType::text;
  if (column.target == "msg_id")
    return "coalesce(" + given + (text ? "::uuid" : "") + ", " + options.table.quoted_schema() +
           ".outbox_uuid_v7())";
  if (column.target == "created_at") return "coalesce(" + given + ", now())";
  if (column.target == "body" && text) return given + "::" + std::string(to_string(options.body_type));
  return given;
}

struct Insert {
  Pieces into;
  Pieces values;
};

Insert insert_of(const View& view, const MigrateOptions& options) {
  Insert out;
  for (const ViewColumn& column : view.columns) {
    if (column.kind == ViewTarget::header || column.target == "headers") continue;
    out.into.push_back(quoted(column.target));
    out.values.push_back(stored(column, options));
  }
  if (!view.topic.empty()) {
    out.into.emplace_back("topic");
    out.values.push_back(pg::quote_literal(view.topic));
  }
  if (std::string headers = headers_of(view); !headers.empty()) {
    out.into.emplace_back("headers");
    out.values.push_back(std::move(headers));
  }
  return out;
}

// Columns that were added to the table: their defaults are not known here.
std::string pairs_of_others(const View& view) {
  Pieces pairs;
  for (const ViewColumn& column : view.columns) {
    if (column.kind == ViewTarget::header ||
        std::ranges::find(own_columns, column.target) != own_columns.end())
      continue;
    pairs.push_back("(" + pg::quote_literal(column.name) + ", " + pg::quote_literal(column.target) + ")");
  }
  return pairs.empty() ? "(NULL, NULL)" : joined(pairs);
}

Status check_names(const View& view) {
  const auto fits = [](const std::string& name) -> Status {
    if (name.find(sql_body_quote) == std::string::npos) return {};
    return failure(Disposition::fatal, "a name must not contain " + std::string(sql_body_quote));
  };
  Status all = fits(view.name.schema + "." + view.name.table);
  for (const ViewColumn& column : view.columns) {
    if (all) all = fits(column.name);
    if (all) all = fits(column.target);
  }
  return all;
}

}  // namespace

std::string view_comment(const View& view, const pg::TableName& table) {
  Pieces columns;
  for (const ViewColumn& column : view.columns) {
    columns.push_back(quoted(column.name) + (column.type == ViewType::text ? ":text" : "") + " = " +
                      (column.kind == ViewTarget::header ? "header " + pg::quote_literal(column.target)
                                                         : quoted(column.target)));
  }
  if (!view.topic.empty()) columns.push_back("topic " + pg::quote_literal(view.topic));
  return std::string(view_comment_start) + std::string(view_revision) + " over " + table.quoted() + ": " +
         joined(columns);
}

Result<std::string> render_view(const View& view, const MigrateOptions& options) {
  if (Status right = check_view(view, options.body_type); !right) return failure(right.error());
  if (Status usable = check_names(view); !usable) return failure(usable.error());
  Pieces columns;
  for (const ViewColumn& column : view.columns)
    columns.push_back(shown(column) + " AS " + quoted(column.name));
  const Insert insert = insert_of(view, options);
  return pg::fill_template(
      sql::queries::migrate_view,
      {{"schema", options.table.quoted_schema()},
       {"table", options.table.quoted()},
       {"table_literal", pg::quote_literal(options.table.quoted())},
       {"function_literal", pg::quote_literal(options.table.quoted_schema() + ".outbox_insert_only()")},
       {"view", view.name.quoted()},
       {"view_literal", pg::quote_literal(view.name.quoted())},
       {"columns", joined(columns)},
       {"into", joined(insert.into)},
       {"values", joined(insert.values)},
       {"mapping", pg::quote_literal(view_comment(view, options.table))},
       {"own", pairs_of_others(view)}});
}

Result<std::string> render_view_grants(const View& view) {
  return pg::fill_template(sql::queries::migrate_view_grants,
                           {{"view", view.name.quoted()}, {"view_schema", view.name.quoted_schema()}});
}

}  // namespace outbox::relay
