#include "relay/commands/dead/dead.hpp"

#include <algorithm>

#include "sql/queries/operator.hpp"

namespace outbox::commands {
namespace {

namespace queries = sql::queries;

constexpr std::size_t messages_a_transaction = 500;

DeadMessage read_message(const pg::Rows& rows, int row) {
  DeadMessage out;
  out.id = rows.integer(row, 0);
  out.msg_id = rows.text(row, 1);
  out.topic = rows.text(row, 2);
  if (const auto key = rows.text_or_null(row, 3)) out.key = std::string(*key);
  out.created_at = rows.text(row, 4);
  out.attempts = rows.integer(row, 5);
  out.generation = rows.integer(row, 6);
  out.body_bytes = rows.integer(row, 7);
  out.reason = rows.text(row, 8);
  return out;
}

std::optional<std::string> text_of(const pg::Rows& rows, int row, int column) {
  const auto text = rows.text_or_null(row, column);
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

// Reads under settings that keep the plan on the index, whatever the statistics say.
Result<pg::Rows> read(pg::Session& session, const std::string& sql, const pg::Params& params) {
  pg::Rows found;
  const Status done = session.transaction([&](pg::Session& s) -> Status {
    if (const auto set = s.exec(queries::status_settings); !set) return failure(set.error());
    auto rows = s.exec(sql, params);
    if (!rows) return failure(std::move(rows.error()));
    found = std::move(*rows);
    return {};
  });
  if (!done) return failure(done.error());
  return found;
}

Result<std::int64_t> change(pg::Session& session, const std::string& sql,
                            std::span<const DeadMessage> messages, const std::optional<std::string>& why) {
  std::int64_t changed = 0;
  while (!messages.empty()) {
    const auto now = messages.first(std::min(messages.size(), messages_a_transaction));
    messages = messages.subspan(now.size());
    std::vector<std::int64_t> ids;
    ids.reserve(now.size());
    for (const DeadMessage& message : now) ids.push_back(message.id);
    pg::Params params;
    params.i64s(ids);
    if (why) params.text(*why);
    const auto rows = session.exec(sql, params);
    if (!rows) return failure(rows.error());
    changed += rows->integer(0, 0);
  }
  return changed;
}

}  // namespace

Result<DeadList> list_dead(pg::Session& session, const pg::TableName& table, const DeadFilter& filter,
                           int rows_max) {
  pg::Params params;
  if (filter.ids.empty())
    params.null();
  else
    params.i64s(filter.ids);
  params.text(filter.topic).text(filter.key).text(filter.reason);
  params.untyped(filter.since).untyped(filter.until).i32(rows_max);
  const auto rows = read(session, pg::fill_template(queries::dead_list, {{"table", table.quoted()}}), params);
  if (!rows) return failure(rows.error());
  DeadList out;
  for (int row = 0; row < rows->size(); ++row) out.messages.push_back(read_message(*rows, row));
  if (!rows->empty()) out.total = rows->integer(0, 9);
  return out;
}

Result<std::optional<DeadDetail>> show_dead(pg::Session& session, const pg::TableName& table, std::int64_t id,
                                            Body body) {
  pg::Params params;
  params.i64(id).text(table.schema + "." + table.table).i32(body == Body::show ? body_shown_max : 0);
  const std::string sql =
      pg::fill_template(queries::dead_show, {{"schema", table.quoted_schema()}, {"table", table.quoted()}});
  const auto rows = read(session, sql, params);
  if (!rows) return failure(rows.error());
  if (rows->empty()) return std::optional<DeadDetail>{};
  return std::optional<DeadDetail>{{.message = read_message(*rows, 0),
                                    .headers = std::string(rows->text(0, 9)),
                                    .body = text_of(*rows, 0, 10),
                                    .held_behind = rows->integer(0, 11),
                                    .held_since = text_of(*rows, 0, 12)}};
}

Result<std::int64_t> retry_dead(pg::Session& session, const pg::TableName& table,
                                std::span<const DeadMessage> messages) {
  return change(session, pg::fill_template(queries::dead_retry, {{"schema", table.quoted_schema()}}),
                messages, {});
}

Result<std::int64_t> discard_dead(pg::Session& session, const pg::TableName& table,
                                  std::span<const DeadMessage> messages, const std::string& why) {
  return change(session, pg::fill_template(queries::dead_discard, {{"schema", table.quoted_schema()}}),
                messages, why);
}

}  // namespace outbox::commands
