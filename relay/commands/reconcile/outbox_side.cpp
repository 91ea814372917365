#include "relay/commands/reconcile/outbox_side.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "sql/queries/reconcile.hpp"

namespace outbox::commands {
namespace {

namespace queries = sql::queries;

Result<pg::Session> connect(const std::string& uri) {
  return pg::Session::connect({.uri = uri, .application_name = "outboxd reconcile"});
}

SentRow read_row(const pg::Rows& rows, int row) {
  const auto key = rows.text_or_null(row, 3);
  return {.id = rows.integer(row, 0),
          .msg_id = rows.uuid(row, 1),
          .topic = std::string{rows.text(row, 2)},
          .key = key ? std::optional{std::string{*key}} : std::nullopt,
          .partition = static_cast<std::int32_t>(rows.integer(row, 4)),
          .offset = rows.integer(row, 5),
          .generation = static_cast<std::int32_t>(rows.integer(row, 6)),
          .body = hash_of(rows, row, 7),
          .sent_at = rows.timestamptz(row, 8)};
}

// What goes out, as bytes.
std::string body_octets(std::string_view type) {
  return type == "bytea" ? "o.body" : "convert_to(o.body::text, 'UTF8')";
}

void add_topics(pg::Params& params, const RowFilter& filter) {
  if (filter.topics.empty())
    params.null();
  else
    add_texts(params, filter.topics);
}

}  // namespace

void add_texts(pg::Params& params, const std::vector<std::string>& texts) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  params.texts(std::span<const std::string_view>{views});
}

std::optional<Sha256> hash_of(const pg::Rows& rows, int row, int column) {
  const auto bytes = rows.text_or_null(row, column);
  Sha256 out{};
  if (!bytes || bytes->size() != out.size()) return std::nullopt;
  std::ranges::transform(*bytes, out.begin(), [](char c) { return static_cast<std::uint8_t>(c); });
  return out;
}

Status open_view(pg::Session& session) {
  const auto begun = session.exec(queries::reconcile_begin);
  if (!begun) return failure(begun.error());
  return {};
}

Result<pg::Rows> fetch(pg::Session& session) {
  return session.exec(queries::reconcile_fetch, {}, pg::Format::binary);
}

Result<pg::Rows> probe(pg::Session& session, const std::string& sql, const pg::Params& params) {
  pg::Rows out;
  Status done = session.transaction([&](pg::Session& s) -> Status {
    if (const auto set = s.exec(queries::reconcile_settings); !set) return failure(set.error());
    auto rows = s.exec(sql, params, pg::Format::binary);
    if (!rows) return failure(rows.error());
    out = std::move(*rows);
    return {};
  });
  if (!done) return failure(done.error());
  return out;
}

OutboxSide::OutboxSide(pg::Session view, pg::Session now, const pg::TableName& table)
    : view_(std::make_unique<pg::Session>(std::move(view))),
      now_(std::make_unique<pg::Session>(std::move(now))),
      table_(table) {}

Result<OutboxSide> OutboxSide::open(const std::string& uri, const pg::TableName& table,
                                    const RowFilter& filter, const relay::TopicMap& in_kafka) {
  auto view = connect(uri);
  if (!view) return failure(std::move(view.error()));
  auto now = connect(uri);
  if (!now) return failure(std::move(now.error()));
  OutboxSide out{std::move(*view), std::move(*now), table};
  if (Status begun = out.begin(filter, in_kafka); !begun) return failure(begun.error());
  return out;
}

Status OutboxSide::begin(const RowFilter& filter, const relay::TopicMap& in_kafka) {
  filter_ = filter;
  pg::Params name;
  name.text(table_.quoted());
  const auto body = view_->exec(queries::reconcile_body, name);
  if (!body) return failure(body.error());
  if (body->empty())
    return failure(Disposition::fatal, "there is no table " + table_.quoted() + " with a column body",
                   "42P01", "run `outboxd migrate`, or correct source.table");
  if (Status opened = open_view(*view_); !opened) return opened;

  const std::string source = table_.schema + "." + table_.table;
  pg::Params times;
  times.untyped(filter.since).untyped(filter.until).text(table_.quoted());
  const auto span =
      view_->exec(pg::fill_template(queries::reconcile_span, {{"schema", table_.quoted_schema()}}), times,
                  pg::Format::binary);
  if (!span) return failure(span.error());
  span_ = {span->timestamptz(0, 0), span->timestamptz(0, 1), span->timestamptz(0, 2),
           span->timestamptz(0, 3)};

  pg::Params of_source;
  of_source.text(source);
  add_topics(of_source, filter);
  const auto topics = view_->exec(
      pg::fill_template(queries::reconcile_topics, {{"schema", table_.quoted_schema()}}), of_source);
  if (!topics) return failure(topics.error());
  std::vector<std::string> own;
  for (int i = 0; i < topics->size(); ++i) {
    own.emplace_back(topics->text(i, 0));
    topics_.push_back(in_kafka.to_kafka(own.back()));
  }
  pg::Params params;
  add_topics(params, filter);
  params.timestamptz(span_.since).timestamptz(span_.until);
  add_texts(params, own);
  add_texts(params, topics_);
  std::ranges::sort(topics_);  // two of them may go to one
  topics_.erase(std::ranges::unique(topics_).begin(), topics_.end());
  const auto declared = view_->exec(
      pg::fill_template(queries::reconcile_rows,
                        {{"table", table_.quoted()}, {"body_octets", body_octets(body->text(0, 0))}}),
      params);
  if (!declared) return failure(declared.error());
  sent_.emplace([session = view_.get()] { return fetch(*session); }, read_row);
  return {};
}

Result<std::map<std::string, std::int64_t>> OutboxSide::counts() {
  pg::Params params;
  add_topics(params, filter_);
  params.timestamptz(span_.since).timestamptz(span_.until);
  const auto rows =
      view_->exec(pg::fill_template(queries::reconcile_counts, {{"table", table_.quoted()}}), params);
  if (!rows) return failure(rows.error());
  std::map<std::string, std::int64_t> out;
  for (int i = 0; i < rows->size(); ++i) out[std::string{rows->text(i, 0)}] = rows->integer(i, 1);
  return out;
}

Result<std::vector<std::optional<RowState>>> OutboxSide::look_up(std::span<const std::int64_t> ids,
                                                                 std::span<const WallTime> created_at) {
  pg::Params params;
  params.i64s(ids).timestamptzs(created_at);
  const auto rows =
      probe(*now_, pg::fill_template(queries::reconcile_look_up, {{"table", table_.quoted()}}), params);
  if (!rows) return failure(rows.error());
  std::vector<std::optional<RowState>> out(ids.size());
  for (int i = 0; i < rows->size(); ++i)
    out[static_cast<std::size_t>(rows->integer(i, 0) - 1)] =
        RowState{.msg_id = rows->uuid(i, 1),
                 .status = std::string{rows->text(i, 2)},
                 .generation = static_cast<std::int32_t>(rows->integer(i, 3)),
                 .partition = static_cast<std::int32_t>(rows->integer(i, 4)),
                 .offset = rows->integer(i, 5)};
  return out;
}

}  // namespace outbox::commands
