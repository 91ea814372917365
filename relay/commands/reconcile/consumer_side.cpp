#include "relay/commands/reconcile/consumer_side.hpp"

#include <algorithm>
#include <utility>

#include "pg/identifier.hpp"
#include "relay/commands/reconcile/outbox_side.hpp"
#include "sql/queries/reconcile.hpp"

namespace outbox::commands {
namespace {

namespace queries = sql::queries;

ProcessedRow read_row(const pg::Rows& rows, int row) {
  return {.msg_id = rows.uuid(row, 0),
          .topic = std::string{rows.text(row, 1)},
          .partition = static_cast<std::int32_t>(rows.integer(row, 2)),
          .offset = rows.integer(row, 3)};
}

// As consumers hash it: a tombstone is 32 zero bytes.
Sha256 stored_as(const std::optional<Sha256>& body) {
  return body.value_or(Sha256{});
}

}  // namespace

ConsumerSide::ConsumerSide(pg::Session view, pg::Session now, std::string name, std::string schema)
    : view_(std::make_unique<pg::Session>(std::move(view))),
      now_(std::make_unique<pg::Session>(std::move(now))),
      name_(std::move(name)),
      schema_(std::move(schema)) {}

Result<ConsumerSide> ConsumerSide::open(const ConsumerPlace& place, const std::string& consumer,
                                        const std::vector<std::string>& topics,
                                        const std::vector<std::string>& sent, WallTime since) {
  const auto schema = pg::quote_identifier(place.schema);
  if (!schema) return failure(schema.error());
  auto view = pg::Session::connect({.uri = place.uri, .application_name = "outboxd reconcile"});
  if (!view) return failure(std::move(view.error()));
  auto now = pg::Session::connect({.uri = place.uri, .application_name = "outboxd reconcile"});
  if (!now) return failure(std::move(now.error()));
  ConsumerSide out{std::move(*view), std::move(*now), consumer, *schema};
  if (const Status known = out.know(topics, sent); !known) return failure(known.error());

  if (const Status opened = open_view(*out.view_); !opened) return failure(opened.error());
  pg::Params params;
  params.text(consumer);
  add_texts(params, out.topics_);
  params.timestamptz(since);
  const auto declared =
      out.view_->exec(pg::fill_template(queries::reconcile_processed, {{"schema", out.schema_}}), params);
  if (!declared) return failure(declared.error());
  out.processed_.emplace([session = out.view_.get()] { return fetch(*session); }, read_row);
  return out;
}

Status ConsumerSide::know(const std::vector<std::string>& topics, const std::vector<std::string>& sent) {
  pg::Params who;
  who.text(name_);
  const auto known = now_->exec(pg::fill_template(queries::reconcile_consumer, {{"schema", schema_}}), who);
  if (!known) {
    Error error = known.error();
    if (error.code == "42P01" || error.code == "3F000")
      error.advice =
          "the consumer's tables are not in this database and schema: name them with "
          "--consumer-uri and --consumer-schema";
    return failure(std::move(error));
  }
  topics_ = topics;
  if (!known->is_null(0, 1)) registered_at_ = known->timestamptz(0, 1);
  if (!registered_at_ && known->is_null(0, 0))
    return failure(Disposition::fatal, "no consumer named " + name_ + " is known in this database", "",
                   "the table inbox_consumer has the names");
  for (int i = 0; topics.empty() && i < known->size(); ++i) {
    const auto topic = known->text_or_null(i, 0);
    if (topic && std::ranges::find(sent, *topic) != sent.end()) topics_.emplace_back(*topic);
  }
  return {};
}

bool ConsumerSide::reads(const std::string& topic) const {
  return std::ranges::find(topics_, topic) != topics_.end();
}

Status ConsumerSide::judge(std::span<const Expected> expected, WallTime settled, Side& side,
                           std::vector<Finding>& found) {
  std::vector<const Expected*> asked;
  std::vector<Uuid> ids;
  for (const Expected& e : expected) {
    if (!reads(e.topic)) {
      side.unknown[Unknown::topic_not_read] += 1;
      continue;
    }
    asked.push_back(&e);
    ids.push_back(e.msg_id);
  }
  if (ids.empty()) return {};
  pg::Params params;
  params.text(name_).uuids(ids);
  const auto rows =
      probe(*now_, pg::fill_template(queries::reconcile_expected, {{"schema", schema_}}), params);
  if (!rows) return failure(rows.error());
  for (int i = 0; i < rows->size(); ++i)
    judge_one(*asked[static_cast<std::size_t>(rows->integer(i, 0) - 1)], *rows, i, settled, side, found);
  return {};
}

void ConsumerSide::judge_one(const Expected& message, const pg::Rows& rows, int row, WallTime settled,
                             Side& side, std::vector<Finding>& found) const {
  const auto finding = [&](Wrong wrong, std::string detail) {
    found.push_back({.wrong = wrong,
                     .where = name_,
                     .id = message.id,
                     .msg_id = to_string(message.msg_id),
                     .topic = message.topic,
                     .partition = message.partition,
                     .offset = message.offset,
                     .detail = std::move(detail)});
  };
  if (!rows.is_null(row, 1)) {
    if (hash_of(rows, row, 2) != stored_as(message.body))
      return finding(Wrong::conflicting, "it has processed another payload under this id");
    side.counted[std::string{rows.text(row, 1)}] += 1;
    return;
  }
  if (rows.boolean(row, 3)) {
    side.unknown[Unknown::forgotten] += 1;
  } else if (registered_at_ && message.sent_at < *registered_at_) {
    side.unknown[Unknown::before_consumer] += 1;
  } else if (message.sent_at > settled) {
    side.counted["not yet processed, sent just now"] += 1;
  } else {
    finding(Wrong::missing, "it has not processed this message");
  }
}

}  // namespace outbox::commands
