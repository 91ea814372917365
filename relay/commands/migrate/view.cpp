#include "relay/commands/migrate/view.hpp"

#include <algorithm>
#include <set>

#include "relay/commands/migrate/lock_patience.hpp"
#include "relay/commands/migrate/migration_script.hpp"
#include "relay/commands/migrate/view_script.hpp"
#include "sql/queries/migrate.hpp"

namespace outbox::relay {
namespace {

Error wrong(const std::string& what, const std::string& advice = {}) {
  return {Disposition::fatal, {}, what, advice};
}

Status check_targets(pg::Session& session, const View& view, const pg::TableName& table) {
  const auto rows =
      session.exec(sql::queries::migrate_view_columns, pg::Params{}.text(table.schema).text(table.table));
  if (!rows) return failure(rows.error());
  std::set<std::string, std::less<>> there;
  for (int row = 0; row < rows->size(); ++row) there.emplace(rows->text(row, 0));
  for (const ViewColumn& column : view.columns) {
    if (column.kind == ViewTarget::header || there.contains(column.target)) continue;
    return failure(wrong(table.quoted() + " has no column \"" + column.target + "\"",
                         "ALTER TABLE … ADD COLUMN adds one of your own; what only has to be sent along is a "
                         "header: " +
                             column.name + "=header:…"));
  }
  return {};
}

// The comment of the view that outboxd made before; empty: nothing has the name.
Result<std::string> standing(pg::Session& session, const pg::TableName& name) {
  const auto rows =
      session.exec(sql::queries::migrate_view_look, pg::Params{}.text(name.schema).text(name.table));
  if (!rows) return failure(rows.error());
  if (rows->empty()) return std::string{};
  const bool view = rows->text(0, 0) == "v";
  if (view && rows->text(0, 1).starts_with(view_comment_start)) return std::string(rows->text(0, 1));
  if (view)
    return failure(
        wrong(name.quoted() + " is a view that outboxd did not make", "name another one, or drop it"));
  return failure(wrong(name.quoted() + " exists, and is no view",
                       "make the view by another name and let the two change places: docs/own-table.md"));
}

Result<std::vector<std::string>> rights(pg::Session& session, const View& view) {
  std::vector<std::string_view> names;
  names.reserve(view.columns.size());
  for (const ViewColumn& column : view.columns) names.emplace_back(column.name);
  const auto rows =
      session.exec(sql::queries::migrate_view_rights, pg::Params{}.text(view.name.quoted()).texts(names));
  if (!rows) return failure(rows.error());
  std::vector<std::string> out;
  out.reserve(static_cast<std::size_t>(rows->size()));
  for (int row = 0; row < rows->size(); ++row) out.emplace_back(rows->text(row, 0));
  return out;
}

// Its grants, which the next one is to have.
Result<std::vector<std::string>> remove(pg::Session& session, const View& view) {
  auto given = rights(session, view);
  if (!given) return given;
  if (Status gone = session.exec_script("DROP VIEW " + view.name.quoted()); !gone)
    return failure(gone.error());
  return given;
}

}  // namespace

Result<ViewChange> make_view(pg::Session& session, const View& view, const MigrateOptions& options) {
  const auto script = render_view(view, options);
  if (!script) return failure(script.error());
  const auto migration = MigrationScript::of(options);
  if (!migration) return failure(migration.error());
  ViewChange change = ViewChange::none;
  const auto made_once = [&](pg::Session& s) -> Status {
    if (Status begun = s.exec_script(migration->begin()); !begun) return begun;
    if (Status found = check_targets(s, view, options.table); !found) return found;
    const auto old = standing(s, view.name);
    if (!old) return failure(old.error());
    if (*old == view_comment(view, options.table)) return {};
    change = old->empty() ? ViewChange::made : ViewChange::replaced;
    std::vector<std::string> given;
    if (!old->empty()) {
      auto removed = remove(s, view);
      if (!removed) return failure(removed.error());
      given = std::move(*removed);
    }
    if (Status made = s.exec_script(*script); !made) return made;
    for (const std::string& grant : given) {
      if (Status granted = s.exec_script(grant); !granted) return granted;
    }
    return {};
  };
  const Status done = with_patience(options.lock_patience, [&] { return session.transaction(made_once); });
  if (!done) return failure(done.error());
  return change;
}

}  // namespace outbox::relay
