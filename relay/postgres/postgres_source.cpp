#include "relay/postgres/postgres_source.hpp"

#include <algorithm>
#include <utility>

#include "relay/postgres/source_claim.hpp"
#include "relay/postgres/source_lease.hpp"
#include "relay/postgres/source_link.hpp"
#include "relay/postgres/source_mark.hpp"
#include "relay/postgres/upkeep.hpp"

namespace outbox::relay {
namespace {

using Results = Result<std::vector<pg::Rows>>;

std::string_view scope_text(HoldScope scope) {
  return scope == HoldScope::key ? "key" : "topic";
}

auto status_only(DoneStatus done) {
  return [done = std::move(done)](Results results) {
    if (!results) return done(failure(std::move(results.error())));
    done({});
  };
}

Result<LedgerStanding> read_ledger_standing(const pg::Rows& rows) {
  LedgerStanding standing;
  for (int row = 0; row < rows.size(); ++row) {
    const LaneGeneration generation{static_cast<std::int32_t>(rows.integer(row, 0)),
                                    static_cast<std::int16_t>(rows.integer(row, 1))};
    standing.ledger = rows.uuid(row, 2);
    if (rows.boolean(row, 3))
      standing.present = generation;
    else
      standing.older.push_back(generation);
  }
  if (standing.present.lanes > 0) return standing;
  return failure(Disposition::retry, "the lanes are being dealt again", "", "asked again");
}

bool has_first_lane(const LeaseReply& reply) {
  return std::any_of(reply.held.begin(), reply.held.end(),
                     [](const Lease& l) { return l.lane == LaneId{0}; });
}

}  // namespace

struct PostgresSource::State {
  State(boost::asio::io_context& loop, PostgresSourceOptions options)
      : upkeep(std::make_shared<Upkeep>(loop, options)),
        link(std::make_shared<SourceLink>(loop, std::move(options))) {}

  // Calls made while the table is not known to be fit are answered with the reason.
  template <class D>
  bool refused(const D& done) {
    if (link->sql() != nullptr) return false;
    link->post([done, why = link->why_not()] { done(failure(why)); });
    return true;
  }

  std::shared_ptr<Upkeep> upkeep;
  std::shared_ptr<SourceLink> link;
  std::shared_ptr<ClaimBudget> budget = std::make_shared<ClaimBudget>();
};

PostgresSource::PostgresSource(boost::asio::io_context& loop, PostgresSourceOptions options)
    : state_(std::make_shared<State>(loop, std::move(options))) {}

PostgresSource::~PostgresSource() {
  stop();
}

void PostgresSource::start(Events events) {
  state_->link->start(std::move(events));
}
void PostgresSource::stop() {
  state_->upkeep->stop();
  state_->link->stop();
}

void PostgresSource::set_uri(const std::string& uri) {
  state_->link->set_uri(uri);
  state_->upkeep->set_uri(uri);
}

void PostgresSource::claim(ClaimRequest request, Done<Batch> done) {
  if (state_->refused(done)) return;
  start_claim(state_->link, state_->budget, std::move(request), std::move(done));
}

void PostgresSource::mark(std::vector<SentRow> rows, AfterSent after, Done<MarkReply> done) {
  if (state_->refused(done)) return;
  start_mark(state_->link, std::move(rows), after, std::move(done));
}

void PostgresSource::bury(DeadRow row, DoneStatus done) {
  if (state_->refused(done)) return;
  pg::Params params;
  params.i64(row.id.value).text(row.reason).text(state_->link->source());
  params.i16(row.lease.lane.value).i64(row.lease.epoch.value);
  if (row.hold) {
    params.text(scope_text(row.hold->scope)).text(row.hold->topic).text(row.hold->key);
  } else {
    params.null().text("").text("");
  }
  params.i32(row.generation).uuid(row.msg_id);
  state_->link->run(Work::mark, {{state_->link->sql()->bury, std::move(params)}},
                    status_only(std::move(done)));
}

void PostgresSource::hold(HoldTarget target, std::string reason, DoneStatus done) {
  if (state_->refused(done)) return;
  pg::Params params;
  params.text(state_->link->source())
      .text(scope_text(target.scope))
      .text(target.topic)
      .text(target.key)
      .text(reason);
  state_->link->run(Work::mark, {{state_->link->sql()->hold, std::move(params)}},
                    status_only(std::move(done)));
}

void PostgresSource::set_held(std::vector<RowName> rows, DoneStatus done) {
  if (state_->refused(done)) return;
  std::vector<std::int64_t> ids;
  std::vector<Uuid> msg_ids;
  for (const RowName& row : rows) {
    ids.push_back(row.id.value);
    msg_ids.push_back(row.msg_id);
  }
  pg::Params params;
  params.i64s(ids).text(state_->link->source()).uuids(msg_ids);
  const SourceSql& sql = *state_->link->sql();
  state_->link->run(Work::mark, {{sql.hold_lock, params}, {sql.set_held, params}},
                    status_only(std::move(done)));
}

void PostgresSource::release(HoldTarget target, Done<Release> done) {
  if (state_->refused(done)) return;
  pg::Params params;
  params.text(state_->link->source()).text(scope_text(target.scope)).text(target.topic).text(target.key);
  state_->link->run(Work::mark, {{state_->link->sql()->release, std::move(params)}},
                    [done = std::move(done)](Results results) {
                      if (!results) return done(failure(std::move(results.error())));
                      done(results->front().is_null(0, 0) ? Release::kept : Release::done);
                    });
}

void PostgresSource::held_topics(Done<std::vector<std::string>> done) {
  if (state_->refused(done)) return;
  pg::Params params;
  params.text(state_->link->source());
  state_->link->run(Work::control, {{state_->link->sql()->held_topics, std::move(params)}},
                    [done = std::move(done)](Results results) {
                      if (!results) return done(failure(std::move(results.error())));
                      std::vector<std::string> topics;
                      const pg::Rows& rows = results->front();
                      topics.reserve(static_cast<std::size_t>(rows.size()));
                      for (int row = 0; row < rows.size(); ++row) topics.emplace_back(rows.text(row, 0));
                      done(std::move(topics));
                    });
}

void PostgresSource::lease(LeaseRequest request, Done<LeaseReply> done) {
  if (state_->refused(done)) return;
  const MonoTime ends_at = std::chrono::steady_clock::now() + request.ttl;
  start_lease(state_->link, std::move(request),
              [weak = std::weak_ptr(state_), done = std::move(done), ends_at](Result<LeaseReply> reply) {
                const auto state = weak.lock();
                if (state && reply && has_first_lane(*reply)) state->upkeep->owned_until(ends_at);
                done(std::move(reply));
              });
}

void PostgresSource::give_back(std::string owner, std::vector<Lease> lanes, Leaving leaving,
                               DoneStatus done) {
  if (state_->refused(done)) return;
  std::vector<std::int16_t> numbers;
  std::vector<std::int64_t> epochs;
  for (const Lease& lease : lanes) {
    numbers.push_back(lease.lane.value);
    epochs.push_back(lease.epoch.value);
  }
  pg::Params params;
  params.text(state_->link->source()).text(owner).i16s(numbers).i64s(epochs).boolean(leaving == Leaving::yes);
  state_->link->run(Work::control, {{state_->link->sql()->give_back, std::move(params)}},
                    status_only(std::move(done)));
}

void PostgresSource::pin(std::string topic, std::int32_t current, Done<std::int32_t> done) {
  if (state_->refused(done)) return;
  const SourceSql& sql = *state_->link->sql();
  pg::Params pin;
  pin.text(state_->link->source()).text(topic).i32(current);
  pg::Params pinned;
  pinned.text(state_->link->source()).text(topic);
  state_->link->run(Work::control, {{sql.pin, std::move(pin)}, {sql.pinned, std::move(pinned)}},
                    [done = std::move(done), current](Results results) {
                      if (!results) return done(failure(std::move(results.error())));
                      const pg::Rows& rows = results->back();
                      done(rows.empty() ? current : static_cast<std::int32_t>(rows.integer(0, 0)));
                    });
}

void PostgresSource::repin(std::string topic, std::int32_t partitions, DoneStatus done) {
  if (state_->refused(done)) return;
  pg::Params params;
  params.text(state_->link->source()).text(topic).i32(partitions);
  state_->link->run(Work::control, {{state_->link->sql()->repin, std::move(params)}},
                    status_only(std::move(done)));
}

void PostgresSource::join_ledger(Done<LedgerStanding> done) {
  if (state_->refused(done)) return;
  const SourceSql& sql = *state_->link->sql();
  pg::Params params;
  params.text(state_->link->source());
  state_->link->run(Work::control, {{sql.ledger_join, params}, {sql.ledger, params}},
                    [done = std::move(done)](Results results) {
                      if (!results) return done(failure(std::move(results.error())));
                      done(read_ledger_standing(results->back()));
                    });
}

void PostgresSource::settle_ledger(std::vector<LaneGeneration> settled, Lease lease, DoneStatus done) {
  if (state_->refused(done)) return;
  std::vector<std::int32_t> numbers;
  for (const LaneGeneration& generation : settled) numbers.push_back(generation.number);
  pg::Params params;
  params.text(state_->link->source()).i32s(numbers).i16(lease.lane.value).i64(lease.epoch.value);
  state_->link->run(Work::control, {{state_->link->sql()->ledger_settle, std::move(params)}},
                    status_only(std::move(done)));
}

void PostgresSource::declare_asleep(Millis for_how_long, DoneStatus done) {
  if (state_->refused(done)) return;
  if (state_->link->deaf())  // the notifications would cost the writers, and wake nobody
    return state_->link->post([done = std::move(done)] { done({}); });
  pg::Params params;
  params.i64(for_how_long.count()).text(state_->link->options().table.quoted_schema() + ".outbox_asleep");
  state_->link->run(Work::control, {{state_->link->sql()->asleep, std::move(params)}},
                    status_only(std::move(done)));
}

UpkeepFigures PostgresSource::upkeep() const {
  return state_->upkeep->figures();
}

}  // namespace outbox::relay
