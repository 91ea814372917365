#include "relay/postgres/upkeep.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

#include "sql/queries/relay.hpp"

namespace outbox::relay {
namespace {

using Event = UpkeepNote::Event;

constexpr std::string_view lock_not_available = "55P03";

MonoTime now() {
  return std::chrono::steady_clock::now();
}

Sql fill(std::string_view text, const std::map<std::string, std::string>& names = {}) {
  return std::make_shared<const std::string>(pg::fill_template(text, names));
}

void count(Event event, std::int64_t rows, UpkeepFigures& figures) {
  switch (event) {
    case Event::partitions_made:
      figures.partitions_made += rows;
      break;
    case Event::day_dropped:
      ++figures.days_dropped;
      break;
    case Event::rows_deleted:
      figures.rows_deleted += rows;
      break;
    case Event::busy:
      ++figures.put_off;
      break;
    case Event::failed:
      ++figures.failed;
      break;
    case Event::day_kept:
    case Event::default_used:
    case Event::default_empty:
    case Event::default_large:
      break;
  }
}

}  // namespace

Upkeep::Upkeep(boost::asio::io_context& loop, const PostgresSourceOptions& options)
    : loop_(loop),
      options_(options),
      settings_(fill(sql::queries::source_settings)),
      partitions_(fill(sql::queries::upkeep_partitions, {{"schema", options.table.quoted_schema()}})),
      look_(fill(sql::queries::upkeep_look, {{"schema", options.table.quoted_schema()}})),
      drop_(fill(sql::queries::upkeep_drop, {{"schema", options.table.quoted_schema()}})),
      pause_(loop) {}

void Upkeep::owned_until(MonoTime until) {
  owned_until_ = until;
  const UpkeepOptions& o = options_.upkeep;
  if (stopped_ || connection_ || now() < next_round_) return;
  if (o.partitions_ahead > 0 || o.old_rows == OldRows::remove) begin();
}

void Upkeep::stop() {
  stopped_ = true;
  pause_.cancel();
  ++round_;
  connection_.reset();
}

void Upkeep::begin() {
  wrong_ = false;
  made_ = 0;
  pieces_.clear();
  pg::Connection::Options options;
  options.connect = options_.connect;
  options.connect.application_name += " upkeep";
  options.naming = pg::Naming::unnamed;
  pg::Connection::Events events;
  const auto mine = [weak = weak_from_this(), round = ++round_] {
    auto self = weak.lock();
    return self && self->round_ == round ? self : nullptr;
  };
  events.on_up = [mine] {
    if (const auto self = mine()) self->make_partitions();
  };
  events.on_down = [mine](const Error& error) {
    if (const auto self = mine()) {
      self->failed(error);
      self->finish();
    }
  };
  connection_ = std::make_unique<pg::Connection>(loop_, std::move(options), std::move(events));
  connection_->start();
}

void Upkeep::make_partitions() {
  if (options_.upkeep.partitions_ahead == 0) return look();
  if (now() >= owned_until_) return made_partitions();
  pg::Params params;
  params.i32(options_.upkeep.partitions_ahead).text(options_.table.quoted());
  params.i64(options_.upkeep.default_bytes_max);
  piece_ = {};
  ask(
      partitions_, std::move(params),
      [this](const pg::Rows& rows) {
        const auto made = rows.integer(0, 0);
        if (made < 0) note(Event::default_large);
        if (made <= 0) return made_partitions();
        made_ += made;
        make_partitions();
      },
      [this] { made_partitions(); });
}

void Upkeep::made_partitions() {
  if (const std::int64_t made = std::exchange(made_, 0); made > 0) note(Event::partitions_made, made);
  look();
}

void Upkeep::look() {
  if (options_.upkeep.old_rows == OldRows::keep) return finish();
  pg::Params params;
  params.text(options_.table.quoted()).i64(options_.upkeep.replay_window.count());
  ask(
      look_, std::move(params), [this](const pg::Rows& rows) { looked(rows); }, [this] { finish(); });
}

void Upkeep::looked(const pg::Rows& rows) {
  for (int row = 0; row < rows.size(); ++row) {
    Piece piece;
    const std::string_view kind = rows.text(row, 0);
    piece.kind = kind == "day" ? Kind::day : kind == "default" ? Kind::rows_of_default : Kind::rows_of_table;
    piece.oid = static_cast<std::uint32_t>(rows.integer(row, 1));
    piece.name = rows.text(row, 2);
    piece.blocks = rows.integer(row, 3);
    pieces_.push_back(std::move(piece));
  }
  next();
}

void Upkeep::next() {
  if (pieces_.empty() || now() >= owned_until_) return finish();
  piece_ = std::move(pieces_.front());
  pieces_.pop_front();
  if (piece_.kind == Kind::day) return drop();
  erase_ = fill(sql::queries::upkeep_erase, {{"partition", piece_.name}});
  erase(0);
}

void Upkeep::drop() {
  pg::Params params;
  params.i64(piece_.oid).i64(options_.upkeep.replay_window.count());
  ask(
      drop_, std::move(params),
      [this](const pg::Rows& rows) {
        const std::string_view verdict = rows.text(0, 0);
        if (verdict == "dropped") note(Event::day_dropped);
        if (verdict == "dropped") kept_.erase(piece_.name);
        if (verdict == "unsent" && kept_.insert(piece_.name).second) note(Event::day_kept);
        next();
      },
      [this] { next(); });
}

void Upkeep::erase(std::int64_t from) {
  if (from >= piece_.blocks) return erased();
  if (now() >= owned_until_) return finish();
  pg::Params params;
  const std::int64_t end = from + options_.upkeep.erase_blocks;
  params.i64(from).i64(end).i64(options_.upkeep.replay_window.count());
  ask(
      erase_, std::move(params),
      [this, end](const pg::Rows& rows) {
        piece_.deleted += rows.integer(0, 0);
        piece_.left += rows.integer(0, 1);
        pause_.expires_after(options_.upkeep.erase_pause);
        pause_.async_wait([this, end, weak = weak_from_this(), round = round_](const auto& error) {
          if (const auto self = weak.lock(); !error && self && round_ == round) erase(end);
        });
      },
      [this] { next(); });
}

void Upkeep::erased() {
  if (piece_.deleted > 0) note(Event::rows_deleted, piece_.deleted);
  if (piece_.kind == Kind::rows_of_default) {
    const std::int64_t before = std::exchange(in_default_, piece_.left);
    if (piece_.left > before) note(Event::default_used, piece_.left);
    if (piece_.left == 0 && before > 0) note(Event::default_empty);
  }
  next();
}

void Upkeep::finish() {
  if (!wrong_) again_.reset();
  next_round_ = now() + (wrong_ ? std::min(options_.upkeep.every, again_.next()) : options_.upkeep.every);
  ++round_;
  // Not from inside one of its own callbacks.
  boost::asio::post(loop_, [gone = std::shared_ptr<pg::Connection>(std::move(connection_))] {});
}

void Upkeep::ask(const Sql& sql, pg::Params params, const Next& then,
                 const std::function<void()>& otherwise) {
  pg::Segment segment;
  segment.statements = {{settings_, {}, pg::Format::binary}, {sql, std::move(params), pg::Format::binary}};
  segment.deadline = options_.deadline;
  connection_->run(std::move(segment),
                   [weak = weak_from_this(), round = round_, then, otherwise](auto results) {
                     const auto self = weak.lock();
                     if (!self || self->round_ != round) return;
                     if (results) return then(results->back());
                     self->failed(results.error());
                     otherwise();
                   });
}

void Upkeep::failed(const Error& error) {
  wrong_ = true;
  if (error.code == lock_not_available)
    note(Event::busy);
  else
    note(Event::failed, 0, error.text());
}

void Upkeep::note(Event event, std::int64_t rows, const std::string& why) {
  count(event, rows, figures_);
  if (options_.upkeep.on_note) options_.upkeep.on_note({event, piece_.name, rows, why});
}

}  // namespace outbox::relay
