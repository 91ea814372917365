#include "relay/postgres/survey.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "pg/connection.hpp"
#include "sql/queries/operator.hpp"
#include "sql/queries/relay.hpp"

namespace outbox::relay {
namespace {

constexpr int rest_factor = 19;
namespace queries = sql::queries;

std::shared_ptr<const std::string> shared(std::string sql) {
  return std::make_shared<const std::string>(std::move(sql));
}

}  // namespace

struct Survey::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& loop, SurveyOptions o)
      : options(std::move(o)),
        source(options.table.schema + "." + options.table.table),
        settings(shared(std::string{queries::status_settings})),
        counts(shared(pg::fill_template(queries::status_counts, {{"table", options.table.quoted()}}))),
        lanes(shared(pg::fill_template(queries::status_lanes, {{"schema", options.table.quoted_schema()}}))),
        holds(shared(pg::fill_template(queries::status_holds, {{"schema", options.table.quoted_schema()}}))),
        dead(shared(pg::fill_template(queries::survey_dead, {{"table", options.table.quoted()}}))),
        storage(shared(std::string{queries::survey_storage})),
        horizon(shared(std::string{queries::status_horizon})),
        timer(loop),
        connection(loop,
                   {.connect = options.connect,
                    .naming = options.prepared ? pg::Naming::named : pg::Naming::unnamed,
                    .seed = options.seed},
                   {.on_up = [this] { look(); }, .on_down = [](const Error&) {}, .on_notify = {}}) {}

  void look();
  void looked(MonoTime asked, const Result<std::vector<pg::Rows>>& rows);
  void again(Millis pause);
  [[nodiscard]] pg::Segment segment() const;

  SurveyOptions options;
  std::string source;
  std::shared_ptr<const std::string> settings, counts, lanes, holds, dead, storage, horizon;
  boost::asio::steady_timer timer;
  pg::Connection connection;
  SurveyFigures figures;
  bool looking = false;
  bool stopped = false;
};

pg::Segment Survey::State::segment() const {
  pg::Params of_source;
  of_source.text(source);
  pg::Params some_holds = of_source;
  some_holds.i32(holds_shown_max);
  pg::Params name;
  name.text(options.table.quoted());
  pg::Segment out;
  out.statements = {{settings, {}, pg::Format::text},     {counts, {}, pg::Format::text},
                    {lanes, of_source, pg::Format::text}, {holds, some_holds, pg::Format::text},
                    {dead, {}, pg::Format::text},         {storage, name, pg::Format::text},
                    {horizon, {}, pg::Format::text}};
  out.deadline = options.deadline;
  return out;
}

void Survey::State::look() {
  if (stopped || looking || !connection.up()) return;
  looking = true;
  connection.run(segment(), [weak = weak_from_this(), asked = std::chrono::steady_clock::now()](auto rows) {
    if (const auto self = weak.lock(); self && !self->stopped) self->looked(asked, rows);
  });
}

void Survey::State::looked(MonoTime asked, const Result<std::vector<pg::Rows>>& rows) {
  looking = false;
  const MonoTime now = std::chrono::steady_clock::now();
  const auto took = std::chrono::duration_cast<Micros>(now - asked);
  figures.error = rows ? "" : rows.error().text();
  if (rows) {
    SurveyFacts facts;
    read_counts((*rows)[1], facts.counts, facts.oldest);
    facts.lanes = read_lanes((*rows)[2]);
    facts.holds = read_holds((*rows)[3], facts.holds_total);
    facts.dead = read_dead_reasons((*rows)[4]);
    read_storage((*rows)[5], facts);
    facts.horizon = read_horizon((*rows)[6]);
    figures.facts = std::move(facts);
    figures.taken_at = now;
    figures.took = took;
  } else {
    figures.failed += 1;
  }
  again(std::max(options.every, std::chrono::duration_cast<Millis>(took * rest_factor)));
}

void Survey::State::again(Millis pause) {
  timer.expires_after(pause);
  timer.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    if (const auto self = weak.lock(); !error && self) self->look();
  });
}

Survey::Survey(boost::asio::io_context& loop, SurveyOptions options)
    : state_(std::make_shared<State>(loop, std::move(options))) {}

Survey::~Survey() {
  stop();
}

void Survey::start() {
  state_->connection.start();
}

void Survey::stop() {
  if (std::exchange(state_->stopped, true)) return;
  state_->timer.cancel();
  state_->connection.stop();
}

void Survey::set_uri(const std::string& uri) {
  state_->connection.set_uri(uri);
}

void Survey::every(Millis interval) {
  state_->options.every = interval;
}

const SurveyFigures& Survey::figures() const {
  return state_->figures;
}

}  // namespace outbox::relay
