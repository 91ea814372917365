#include "consumer/statements.hpp"

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
                    .processed_insert = fill(q::processed_insert),
                    .processed_look_up = fill(q::processed_look_up),
                    .dead_insert = fill(q::dead_insert),
                    .publish = fill(q::publish),
                    .body_type = std::string(q::body_type),
                    .ready = std::string(q::ready)};
}

}  // namespace outbox
