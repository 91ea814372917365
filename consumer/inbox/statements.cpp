#include "consumer/inbox/statements.hpp"

#include "pg/identifier.hpp"
#include "sql/consumer.hpp"

namespace outbox {

Result<Statements> make_statements(const std::string& schema) {
  auto quoted = pg::quote_identifier(schema);
  if (!quoted) return failure(std::move(quoted.error()));
  const auto fill = [&](std::string_view sql) { return pg::fill_template(sql, {{"schema", *quoted}}); };
  namespace q = sql::consumer;
  return Statements{.schema = schema,
                    .begin = std::string(q::begin),
                    .commit = std::string(q::commit),
                    .processed_insert = fill(q::processed_insert),
                    .processed_look_up = fill(q::processed_look_up),
                    .processed_state = fill(q::processed_state),
                    .seq_advance = fill(q::seq_advance),
                    .version_advance = fill(q::version_advance),
                    .register_consumer = fill(q::register_consumer),
                    .maintain = fill(q::maintain),
                    .offset_claim = fill(q::offset_claim),
                    .offset_start = fill(q::offset_start),
                    .offset_move = fill(q::offset_move),
                    .dead_insert = fill(q::dead_insert),
                    .park_key = fill(q::park_key),
                    .parked_lock = fill(q::parked_lock),
                    .dead_take = fill(q::dead_take),
                    .dead_headers = fill(q::dead_headers),
                    .processed_revive = fill(q::processed_revive),
                    .dead_done = fill(q::dead_done),
                    .dead_failed = fill(q::dead_failed),
                    .dead_later = fill(q::dead_later),
                    .publish = fill(q::publish),
                    .body_type = std::string(q::body_type),
                    .ready = std::string(q::ready)};
}

}  // namespace outbox
