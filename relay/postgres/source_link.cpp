#include "relay/postgres/source_link.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace outbox::relay {
namespace {

constexpr std::size_t control_at = 0;
constexpr std::size_t claim_at = 1;
constexpr std::size_t mark_from = 2;

PostgresSourceOptions checked(PostgresSourceOptions options) {
  options.connections = std::clamp(options.connections, 2, 4);
  return options;
}

}  // namespace

SourceLink::SourceLink(boost::asio::io_context& loop, PostgresSourceOptions options)
    : loop_(loop),
      options_(checked(std::move(options))),
      source_(options_.table.schema + "." + options_.table.table),
      again_(loop),
      last_error_{Disposition::reconnect, {}, "not connected to PostgreSQL yet", {}} {}

void SourceLink::start(Source::Events events) {
  events_ = std::move(events);
  for (int number = 0; number <= options_.connections; ++number) {
    add_connection(static_cast<std::uint64_t>(number), number == 0);
  }
  for (const auto& connection : connections_) connection->start();
}

void SourceLink::stop() {
  stopped_ = true;
  again_.cancel();
  for (const auto& connection : connections_) connection->stop();
}

void SourceLink::set_uri(const std::string& uri) {
  for (const auto& connection : connections_) connection->set_uri(uri);
}

void SourceLink::add_connection(std::uint64_t number, bool listens) {
  pg::Connection::Options options;
  options.connect = options_.connect;
  options.naming = options_.statements == Statements::prepared ? pg::Naming::named : pg::Naming::unnamed;
  options.seed = options_.seed + number;
  if (listens) options.on_connect = {"LISTEN outbox_msg", "LISTEN outbox_lane"};
  pg::Connection::Events events;
  events.on_up = [this] { connection_up(); };
  events.on_down = [this](const Error& error) { connection_down(error); };
  events.on_notify = [this](std::string_view channel) {
    const auto& hint = channel == "outbox_lane" ? events_.on_lanes : events_.on_hint;
    if (!stopped_ && hint) hint();
  };
  connections_.push_back(std::make_unique<pg::Connection>(loop_, std::move(options), std::move(events)));
}

pg::Connection& SourceLink::choose(Work work) {
  if (work == Work::control) return *connections_[control_at];
  if (work == Work::claim) return *connections_[claim_at];
  return **std::min_element(connections_.begin() + mark_from, connections_.end(),
                            [](const auto& a, const auto& b) { return a->pending() < b->pending(); });
}

void SourceLink::run(Work work, std::vector<pg::Statement> statements, Answer answer,
                     std::optional<Millis> deadline) {
  OUTBOX_CHECK(sql_ != nullptr, "nothing runs before the table was found fit");
  pg::Segment segment;
  segment.deadline = deadline.value_or(options_.deadline);
  segment.statements.reserve(statements.size() + 2);
  if (work == Work::claim) segment.statements.push_back({sql_->claim_begin, {}, pg::Format::binary});
  segment.statements.push_back({sql_->settings, {}, pg::Format::binary});
  const auto before = static_cast<std::ptrdiff_t>(segment.statements.size());
  std::ranges::move(statements, std::back_inserter(segment.statements));
  choose(work).run(std::move(segment),
                   [weak = weak_from_this(), answer = std::move(answer), before](auto results) {
                     const auto self = weak.lock();
                     if (!self || self->stopped_) return;
                     if (results) results->erase(results->begin(), results->begin() + before);
                     answer(std::move(results));
                   });
}

void SourceLink::post(std::function<void()> turn) {
  boost::asio::post(loop_, [weak = weak_from_this(), turn = std::move(turn)] {
    if (const auto self = weak.lock(); self && !self->stopped_) turn();
  });
}

bool SourceLink::deaf() const {
  return connections_[control_at]->pooled();
}

Error SourceLink::why_not() const {
  return last_error_;
}

const PartitionSql* SourceLink::partition(std::uint32_t oid) const {
  const auto at = partitions_.find(oid);
  return at == partitions_.end() ? nullptr : &at->second;
}

void SourceLink::add_partition(std::uint32_t oid, const std::string& quoted) {
  partitions_.insert_or_assign(oid, PartitionSql(options_.table, quoted));
}

// ---------------------------------------------------------------------------------------------------------------------

void SourceLink::connection_up() {
  if (stopped_) return;
  if (std::ranges::all_of(connections_, [](const auto& c) { return c->up(); })) inspect();
}

void SourceLink::connection_down(const Error& error) {
  if (stopped_) return;
  last_error_ = error;
  report(LinkState::down, error.text());
}

void SourceLink::inspect() {
  if (inspecting_) return;
  inspecting_ = true;
  pg::Params params;
  params.text(options_.table.schema).text(options_.table.table);
  pg::Segment segment;
  segment.statements.push_back({inspect_sql_, std::move(params), pg::Format::text});
  segment.deadline = options_.deadline;
  connections_[control_at]->run(std::move(segment), [weak = weak_from_this()](auto rows) {
    const auto self = weak.lock();
    if (self && !self->stopped_) self->inspected(rows);
  });
}

void SourceLink::inspected(const Result<std::vector<pg::Rows>>& rows) {
  inspecting_ = false;
  const auto facts =
      rows ? read_facts(rows->front(), options_.table, options_.partition_column) : failure(rows.error());
  if (!facts) {
    last_error_ = facts.error();
    report(LinkState::down, facts.error().text());
    inspect_later();
    return;
  }
  if (!sql_ || facts_->body != facts->body) {
    sql_ = std::make_shared<const SourceSql>(options_.table, facts->body, options_.partition_column);
    partitions_.clear();
  }
  facts_ = *facts;
  if (std::ranges::all_of(connections_, [](const auto& c) { return c->up(); })) became_fit(*facts);
}

void SourceLink::became_fit(const SourceFacts& facts) {
  report(LinkState::up, facts.server);
  if (deaf() && !std::exchange(pooler_told_, true) && events_.on_pooler) events_.on_pooler();
}

void SourceLink::inspect_later() {
  again_.expires_after(options_.inspect_again);
  again_.async_wait([weak = weak_from_this()](const auto& error) {
    if (const auto self = weak.lock(); !error && self && !self->stopped_) self->connection_up();
  });
}

void SourceLink::report(LinkState state, const std::string& why) {
  if (reported_ == state) return;
  reported_ = state;
  if (events_.on_link) events_.on_link(state, why);
}

}  // namespace outbox::relay
