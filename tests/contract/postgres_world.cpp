#include "tests/contract/postgres_world.hpp"

#include <chrono>
#include <stdexcept>

#include "relay/commands/migrate/migrate.hpp"

namespace outbox::test {
namespace {

std::string as_json(const std::vector<std::pair<std::string, std::string>>& headers) {
  std::string out = "{";
  for (const auto& [name, value] : headers) {
    out.append(out.size() > 1 ? ",\"" : "\"").append(name).append("\":\"").append(value).append("\"");
  }
  return out + "}";
}

std::string filled(std::string_view text, const pg::TableName& table) {
  std::map<std::string, std::string> names;
  if (text.find("{{table}}") != std::string_view::npos) names["table"] = table.quoted();
  if (text.find("{{schema}}") != std::string_view::npos) names["schema"] = table.quoted_schema();
  return pg::fill_template(text, names);
}

pg::Params params_of(const relay::HoldTarget& target) {
  pg::Params params;
  params.text(target.scope == relay::HoldScope::key ? "key" : "topic").text(target.topic).text(target.key);
  return params;
}

}  // namespace

PostgresWorld::PostgresWorld(PostgresWorldOptions options)
    : options_(std::move(options)),
      table_(must(pg::parse_table_name(options_.table))),
      database_(options_.server),
      session_(std::make_unique<pg::Session>(database_.session())) {
  if (options_.migrated) migrate();
  if (options_.started) start_source();
}

PostgresWorld::~PostgresWorld() = default;

void PostgresWorld::migrate() {
  must(session_->exec("CREATE SCHEMA IF NOT EXISTS " + table_.quoted_schema()));
  relay::MigrateOptions options;
  options.table = table_;
  options.body_type = relay::parse_body_type(options_.body_type).value();
  must(relay::migrate(*session_, options));
  must(relay::apply_grants(*session_, {.table = table_}));
}

void PostgresWorld::start_source(const std::string& user) {
  relay::PostgresSourceOptions options;
  options.connect.uri = database_.uri(user);
  options.table = table_;
  options.partition_column = options_.partition_column;
  options.connections = options_.connections;
  options.barrier = options_.barrier;
  options.inspect_again = Millis{50};
  options.upkeep = options_.upkeep;
  links.clear();
  source_ = std::make_unique<relay::PostgresSource>(loop_, options);
  source_->start({.on_hint = [this] { ++hints; },
                  .on_lanes = [this] { ++lane_hints; },
                  .on_link = [this](relay::LinkState state,
                                    const std::string& why) { links.emplace_back(state, why); }});
  if (options_.migrated) {
    pump([this] { return !links.empty() && links.back().first == relay::LinkState::up; });
  }
}

std::string PostgresWorld::sql(std::string_view text, const pg::Params& params) {
  const auto rows = must(session_->exec(filled(text, table_), params));
  return rows.empty() || rows.is_null(0, 0) ? "" : std::string(rows.text(0, 0));
}

std::int64_t PostgresWorld::insert(const NewRow& row) {
  pg::Params params;
  params.text(row.topic);
  params.text(row.key ? std::optional<std::string_view>(*row.key) : std::nullopt);
  params.untyped(row.body ? std::optional<std::string_view>(*row.body) : std::nullopt);
  params.untyped(as_json(row.headers));
  params.untyped(row.due_in ? std::optional<std::string>(std::to_string(row.due_in->count())) : std::nullopt);
  params.untyped(row.id ? std::optional<std::string>(std::to_string(*row.id)) : std::nullopt);
  params.text(table_.quoted());
  std::string column;
  std::string value;
  if (row.partition) {
    column = ", " + pg::quote_identifier(options_.partition_column).value();
    value = ", " + std::to_string(*row.partition);
  }
  return std::stoll(sql("INSERT INTO {{table}} (topic, msg_key, body, headers, available_at, id" + column +
                            ") OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4::jsonb,"
                            " now() + $5::bigint * interval '1 ms',"
                            " coalesce($6::bigint, nextval(pg_get_serial_sequence($7, 'id')))" +
                            value + ") RETURNING id",
                        params));
}

std::int64_t PostgresWorld::next_id() {
  pg::Params params;
  params.text(table_.quoted());
  return std::stoll(sql("SELECT nextval(pg_get_serial_sequence($1, 'id'))", params));
}

std::optional<RowState> PostgresWorld::row(std::int64_t id) {
  const auto all = rows(id);
  return all.empty() ? std::nullopt : std::optional(all.front());
}

std::vector<RowState> PostgresWorld::rows(std::int64_t id) {
  pg::Params params;
  params.i64(id);
  const auto rows = must(session_->exec(
      filled("SELECT status, kafka_partition, kafka_offset, coalesce(last_error, ''), generation, msg_id "
             "FROM {{table}} WHERE id = $1 ORDER BY created_at",
             table_),
      params));
  std::vector<RowState> out;
  for (int at = 0; at < rows.size(); ++at) {
    RowState& state = out.emplace_back();
    state.status = rows.text(at, 0);
    if (!rows.is_null(at, 1)) state.partition = static_cast<std::int32_t>(rows.integer(at, 1));
    if (!rows.is_null(at, 2)) state.offset = rows.integer(at, 2);
    state.last_error = rows.text(at, 3);
    state.generation = static_cast<std::int32_t>(rows.integer(at, 4));
    state.msg_id = rows.uuid(at, 5);
  }
  return out;
}

void PostgresWorld::replace(std::int64_t id) {
  sql("UPDATE {{table}} SET msg_id = gen_random_uuid(), status = 'PENDING' WHERE id = " + std::to_string(id));
}

void PostgresWorld::cancel(std::int64_t id) {
  sql("UPDATE {{table}} SET status = 'CANCELLED' WHERE id = " + std::to_string(id));
}
void PostgresWorld::remove(std::int64_t id) {
  sql("DELETE FROM {{table}} WHERE id = " + std::to_string(id));
}
void PostgresWorld::lock(std::int64_t id) {
  other_ = std::make_unique<pg::Session>(database_.session());
  must(other_->exec("BEGIN"));
  must(
      other_->exec(filled("SELECT FROM {{table}} WHERE id = " + std::to_string(id) + " FOR UPDATE", table_)));
}
void PostgresWorld::unlock() {
  must(other_->exec("ROLLBACK"));
}
void PostgresWorld::replay(std::int64_t id) {
  sql("UPDATE {{table}} SET status = 'PENDING', generation = generation + 1 WHERE id = " +
      std::to_string(id));
}

void PostgresWorld::name_partitions() {
  sql(R"(ALTER TABLE {{table}} ADD COLUMN "Its ""Shelf""" int)");
  options_.partition_column = R"(Its "Shelf")";
  start_source();
}

void PostgresWorld::pause(std::optional<std::string> reason) {
  if (reason)
    sql("SELECT {{schema}}.outbox_pause('pipeline', NULL, NULL, $1, 'somebody')", pg::Params{}.text(*reason));
  else
    sql("SELECT {{schema}}.outbox_resume('pipeline', NULL, NULL, '', 'somebody')");
}

void PostgresWorld::pause(const relay::HoldTarget& target) {
  sql("SELECT {{schema}}.outbox_pause($1, $2, $3, 'audit', 'somebody')", params_of(target));
}
void PostgresWorld::resume(const relay::HoldTarget& target) {
  sql("SELECT {{schema}}.outbox_resume($1, $2, $3, '', 'somebody')", params_of(target));
}
void PostgresWorld::retry(std::int64_t id) {
  sql("SELECT {{schema}}.outbox_dead_retry(" + std::to_string(id) + ")");
}

bool PostgresWorld::hold_exists(const relay::HoldTarget& target) {
  pg::Params params = params_of(target);
  params.text(table_.schema + "." + table_.table);
  return sql("SELECT count(*) > 0 FROM {{schema}}.outbox_hold WHERE scope = $1 AND topic = $2 AND msg_key = "
             "$3 "
             "AND source = $4",
             params) == "t";
}

void PostgresWorld::pump(const std::function<bool()>& until) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (!until()) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("the source did not answer in 20 s" +
                               (links.empty() ? "" : "; " + links.back().second));
    }
    loop_.restart();
    loop_.run_one_for(std::chrono::milliseconds{20});
  }
}

void PostgresWorld::pass(Millis time) {
  loop_.restart();
  loop_.run_for(time);
}

}  // namespace outbox::test
