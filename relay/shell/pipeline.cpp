#include "relay/shell/pipeline.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/crash_point.hpp"

namespace outbox::relay {
namespace {

constexpr Millis stop_grace{2000};  // for the last marks, after the wait for acks is over

}  // namespace

std::string_view to_string(Pipeline::Phase phase) noexcept {
  switch (phase) {
    case Pipeline::Phase::standby:
      return "standby";
    case Pipeline::Phase::working:
      return "working";
    case Pipeline::Phase::draining:
      return "draining";
    case Pipeline::Phase::stopping:
      return "stopping";
    case Pipeline::Phase::stopped:
      return "stopped";
  }
  return "unknown";
}

Pipeline::Pipeline(PipelineOptions options, Loop& loop, Source& source, Broker& broker, log::Logger log,
                   Transactor* transactor)
    : bench_{.options = std::move(options),
             .loop = loop,
             .source = source,
             .broker = broker,
             .log = std::move(log),
             .schedule_turn = [this] { schedule_turn(); },
             .doubt_leases = [this] { leases_.hint(bench_.loop.now()); }},
      leases_(bench_.options.lease_ttl, bench_.options.limits.lanes),
      claimer_(
          bench_, leases_, queues_,
          {.working =
               [this](MonoTime now) {
                 leases_changed(leases_.expire(now));  // it may have run out while a claim was under way
                 return phase_ == Phase::working;
               },
           .takes = [this](LaneId lane,
                           ClaimSerial claim) { return !transactions_ || transactions_->takes(lane, claim); },
           .publish = [this](MonoTime now) { publish(now); }}),
      transactor_(transactor) {
  if (transactor == nullptr) return;
  transactions_ = std::make_unique<Transactions>(bench_, *transactor, leases_, topics_, queues_, marker_);
}

Pipeline::~Pipeline() {
  *alive_ = false;
  if (timer_) bench_.loop.cancel(*timer_);
}

void Pipeline::start() {
  rate_at_ = bench_.loop.now();
  bench_.health.started = rate_at_;
  bench_.source.start({.on_hint =
                           [this] {
                             bench_.counters.hints += 1;
                             bench_.plan.hint(bench_.loop.now());
                             schedule_turn();
                           },
                       .on_lanes =
                           [this] {
                             leases_.hint(bench_.loop.now());
                             schedule_turn();
                           },
                       .on_link =
                           [this](LinkState state, const std::string& why) {
                             note_postgres(state, why);
                             bench_.floors.reset();  // it may be another server
                             if (state == LinkState::up)
                               bench_.log.info("postgres_up", {{"detail", why}});
                             else
                               bench_.log.warn("postgres_down", {{"error", why}, {"next", "reconnecting"}});
                             schedule_turn();
                           },
                       .on_pooler =
                           [this] {
                             bench_.log.warn("postgres_pooler",
                                             {{"detail", "PostgreSQL is reached through a connection pooler"},
                                              {"next",
                                               "unnamed statements, no notifications: the poll finds "
                                               "every row"}});
                           }});
  bench_.broker.start(
      {.on_delivered = [this](std::span<const Delivery> reports) { publisher_.delivered(reports); },
       .on_link =
           [this](LinkState state, const std::string& why) {
             note_kafka(state, why);
             if (state == LinkState::up)
               bench_.log.info("kafka_up", {{"detail", why}});
             else
               bench_.log.warn("kafka_down", {{"error", why}, {"next", "messages wait, in order"}});
           },
       .on_fatal =
           [this](const Error& error) {
             bench_.log.error("producer_finished",
                              {{"error", error.text()}, {"next", "a new producer, unsent rows again"}});
             restart_wanted_ = true;
             restart_at_ = bench_.loop.now();
             drain("producer_finished");
             schedule_turn();
           }});
  schedule_turn();
}

void Pipeline::schedule_turn() {
  if (std::exchange(turn_scheduled_, true)) return;
  bench_.loop.post([this, alive = alive_] {
    if (*alive) turn();
  });
}

void Pipeline::turn() {
  turn_scheduled_ = false;
  if (phase_ == Phase::stopped) return;
  const MonoTime now = bench_.loop.now();
  keep_leases(now);
  settler_.pump(now);
  topics_.pump(now);
  leave_waiting();
  publish(now);
  marker_.pump(now);
  if (restart_wanted_ && !restarting_ && now >= restart_at_) restart_producer();
  hand_over(now);
  if (phase_ == Phase::draining) finish_draining(now);
  if (phase_ == Phase::working && !paused()) claimer_.pump(now);
  bench_.blocklist.forget(bench_.plan.oldest_open());
  sleeper_.pump(now, phase_ == Phase::working);
  if (phase_ == Phase::stopping) keep_stopping(now);
  if (phase_ != Phase::stopped) arm(now);
}

// Sets the one timer to the earliest moment ahead at which a part has something to do. A moment up to the
// turn's own `now` was seen by this turn: what still waits, waits for an event. A moment that passed while
// the turn ran was not.
void Pipeline::arm(MonoTime now) {
  MonoTime at = MonoTime::max();
  const auto wake = [&](MonoTime when) {
    if (when > now) at = std::min(at, when);
  };
  wake(settler_.wake_at());
  wake(topics_.wake_at());
  wake(publisher_.wake_at());
  wake(marker_.wake_at());
  wake(sleeper_.wake_at());
  if (transactions_) wake(transactions_->wake_at());
  if (!leases_.asking() && (phase_ != Phase::stopping || leases_.active())) wake(leases_.next_request());
  if (leases_.active()) wake(leases_.ends_at());
  if (phase_ == Phase::working && !paused()) wake(bench_.plan.wake_at());
  if (phase_ == Phase::stopping) wake(stop_by_);
  if (draining_since_) wake(*draining_since_ + bench_.options.stop_timeout);
  if (restart_wanted_ && !restarting_) wake(restart_at_);
  if (timer_ && at == timer_at_) return;
  if (timer_) bench_.loop.cancel(*std::exchange(timer_, std::nullopt));
  timer_at_ = at;
  if (at == MonoTime::max()) return;
  timer_ = bench_.loop.at(at, [this, alive = alive_] {
    if (!*alive) return;
    timer_.reset();
    timer_at_ = MonoTime::max();
    schedule_turn();
  });
}

void Pipeline::keep_leases(MonoTime now) {
  leases_changed(leases_.expire(now));
  // Whoever stops has its lanes until nothing of them is in flight.
  const bool wanted = phase_ != Phase::stopping || (leases_.active() && !giving_back_);
  if (!wanted || !leases_.request_due(now)) return;
  leases_.requested(now);
  bench_.lease_requests += 1;
  bench_.source.lease(lease_request(now), [this, number = bench_.lease_requests](Result<LeaseReply> reply) {
    crash_here(CrashPoint::relay_leased, reply);
    const bool answered = reply.has_value();
    leased(std::move(reply));
    if (answered && transactions_) transactions_->lease_confirmed(number);
    schedule_turn();
  });
  crash_here(CrashPoint::relay_lease_asked);
}

void Pipeline::leased(Result<LeaseReply> reply) {
  const MonoTime now = bench_.loop.now();
  if (!reply) return leases_.failed(now);
  bench_.health.lease_answered = now;
  const bool other_lanes = reply->lanes != leases_.lanes();
  leases_changed(leases_.answered({reply->held, reply->lanes, reply->share, reply->other_ends}, now));
  if (other_lanes) {
    bench_.log.info("lanes_dealt_anew",
                    {{"lanes", reply->lanes}, {"configured", bench_.options.limits.lanes}});
    drain("lanes_dealt_anew");
  }
  bench_.alone = reply->instances <= 1;
  note_paused(reply->paused.value_or(""));
  note_delivery(reply->differs);
  apply_lanes();
  if (!leases_.active() && phase_ != Phase::stopping && !std::exchange(standby_said_, true))
    bench_.log.info("standby", {{"owner", reply->other_owner},
                                {"instances", reply->instances},
                                {"next", "takes lanes as soon as some are free"}});
}

void Pipeline::leases_changed(LaneLeases::Change change) {
  if (change == LaneLeases::Change::gained) lanes_gained();
  if (change != LaneLeases::Change::ended) return;
  bench_.log.warn("lanes_lost", {{"rows_in_flight", bench_.flight.rows()},
                                 {"next", "nothing is published until they are leased again"}});
  bench_.counters.lanes_lost += 1;
  crash_here(CrashPoint::relay_lanes_lost);
  drain("lanes_lost");
  cut_off();
  apply_lanes();
}

void Pipeline::lanes_gained() {
  if (phase_ == Phase::stopping) return;  // they are given back with the others
  standby_said_ = false;
  std::int64_t epoch = 0;
  for (const auto& lease : leases_.leases())
    if (lease) epoch = std::max(epoch, lease->epoch.value);
  bench_.log.info("lanes_taken", {{"lanes", static_cast<std::int64_t>(leases_.working().count())},
                                  {"of", leases_.lanes()},
                                  {"epoch", epoch}});
  topics_.begin();
  bench_.counters.lanes_taken += 1;
  bench_.plan.hint(bench_.loop.now());
  if (phase_ != Phase::standby) return;
  phase_ = Phase::working;
  bench_.health.look_answered = bench_.loop.now();
  bench_.plan.reset(bench_.loop.now());
}

// What is in flight comes home soon; what Kafka did not take stays PENDING.
void Pipeline::cut_off() {
  bench_.broker.purge();
  if (transactions_) transactions_->cut_off();
}

void Pipeline::publish(MonoTime now) {
  if (!transactions_) return publisher_.pump(now);
  transactions_->pump(now);
  const LaneSet claimable_now = claimable(now);
  if (claimable_now == claimer_.lanes()) return;
  if ((claimable_now & ~claimer_.lanes()).any()) bench_.plan.look_once();
  apply_lanes();
}

LaneSet Pipeline::claimable(MonoTime now) const {
  return transactions_ ? leases_.working() & transactions_->claimable(now) : leases_.working();
}

void Pipeline::apply_lanes() {
  claimer_.set_lanes(claimable(bench_.loop.now()));
  if (leases_.draining().none())
    draining_since_.reset();
  else if (!draining_since_)
    draining_since_ = bench_.loop.now();
}

// What was not published yet, or was refused and waits to be tried again, is published by who has its lane
// then.
void Pipeline::leave_waiting() {
  if (phase_ != Phase::working)
    queues_.drop();
  else if (leases_.draining().any())
    queues_.drop(leases_.draining());
}

// A lane may have its next owner only when nothing of it is in flight here: what waits is left to that owner,
// what is published is awaited and marked.
void Pipeline::hand_over(MonoTime now) {
  if (phase_ == Phase::stopping || handing_over_) return;
  const LaneSet draining = leases_.draining();
  std::vector<Lease> given = leases_.take_unheard();
  for (std::int16_t lane = 0; lane < leases_.lanes(); ++lane)
    if (draining.test(static_cast<std::size_t>(lane)) && bench_.flight.rows_of(LaneId{lane}) == 0 &&
        !bench_.plan.covers(LaneId{lane}))
      given.push_back(leases_.give(LaneId{lane}));
  if (!given.empty()) send_give_back(std::move(given));
  hand_over_overdue(now);
  if (phase_ == Phase::working && !leases_.active()) phase_ = Phase::standby;
}

// Kafka may owe an answer for long; the other instance does not wait for it forever.
void Pipeline::hand_over_overdue(MonoTime now) {
  if (!draining_since_ || now < *draining_since_ + bench_.options.stop_timeout || phase_ != Phase::working)
    return;
  bench_.log.warn("hand_over_timeout", {{"rows_in_flight", bench_.flight.rows()},
                                        {"next", "what Kafka did not acknowledge is sent again"}});
  draining_since_ = now;
  drain("hand_over_timeout");
  cut_off();
}

void Pipeline::send_give_back(std::vector<Lease> lanes) {
  handing_over_ = true;
  bench_.log.info("lanes_given_back", {{"lanes", std::ssize(lanes)},
                                       {"kept", static_cast<std::int64_t>(leases_.working().count())}});
  apply_lanes();
  bench_.source.give_back(bench_.options.owner, std::move(lanes), Leaving::no, [this](const Status&) {
    crash_here(CrashPoint::relay_given_back);
    handing_over_ = false;
    leases_.hint(bench_.loop.now());  // lost on the way, it stands in the answer and is given back again
    schedule_turn();
  });
  crash_here(CrashPoint::relay_give_back_asked);
}

void Pipeline::drain(const char* why) {
  queues_.drop();
  if (phase_ != Phase::working) return;
  phase_ = Phase::draining;
  bench_.health.draining = bench_.loop.now();
  bench_.log.debug("draining", {{"why", why}});
}

void Pipeline::finish_draining(MonoTime now) {
  if (bench_.flight.rows() > 0 || !bench_.plan.idle() || restart_wanted_ || restarting_) return;
  phase_ = leases_.active() ? Phase::working : Phase::standby;
  bench_.health.draining.reset();
  bench_.health.owing.reset();
  bench_.health.look_answered = now;
  bench_.plan.reset(now);
}

void Pipeline::restart_producer() {
  restarting_ = true;
  restart_wanted_ = false;
  bench_.broker.restart([this](Status status) {
    restarting_ = false;
    if (status) {
      restart_backoff_.reset();
      bench_.counters.producers += 1;
      bench_.log.info("producer_new");
    } else {
      restart_wanted_ = true;
      restart_at_ = bench_.loop.now() + restart_backoff_.next();
      bench_.log.error("producer_restart_failed",
                       {{"error", status.error().text()}, {"next", "tried again"}});
    }
    schedule_turn();
  });
}

void Pipeline::stop(std::function<void()> stopped) {
  if (phase_ == Phase::stopping || phase_ == Phase::stopped) return;
  stopped_ = std::move(stopped);
  bench_.log.info("stopping", {{"rows_in_flight", bench_.flight.rows()}});
  phase_ = Phase::stopping;
  bench_.health.stopping = true;
  stop_by_ = bench_.loop.now() + bench_.options.stop_timeout;
  queues_.drop();
  crash_here(CrashPoint::relay_stopping);
  schedule_turn();
}

void Pipeline::keep_stopping(MonoTime now) {
  if (giving_back_) {
    if (now >= stop_by_) close();
    return;
  }
  if (bench_.flight.rows() == 0) return give_back();
  if (now < stop_by_) return;
  stop_by_ = now + stop_grace;
  if (std::exchange(purged_, true)) {
    bench_.log.warn("stopped_with_rows_in_flight",
                    {{"rows", bench_.flight.rows()}, {"next", "they are sent again; consumers deduplicate"}});
    return give_back();
  }
  bench_.log.warn("stop_timeout", {{"rows_in_flight", bench_.flight.rows()},
                                   {"next", "what Kafka did not acknowledge stays pending"}});
  cut_off();
}

void Pipeline::give_back() {
  giving_back_ = true;
  stop_by_ = bench_.loop.now() + stop_grace;
  bench_.source.give_back(bench_.options.owner, {}, Leaving::yes, [this](const Status&) {
    crash_here(CrashPoint::relay_stopped);
    close();
  });
}

void Pipeline::close() {
  if (phase_ == Phase::stopped) return;
  phase_ = Phase::stopped;
  bench_.source.stop();
  bench_.broker.stop();
  if (transactor_ != nullptr) transactor_->stop();
  const Counters& c = bench_.counters;
  bench_.log.info("stopped",
                  {{"marked", c.marked}, {"dead", c.dead}, {"rows_in_flight", bench_.flight.rows()}});
  if (stopped_) std::exchange(stopped_, {})();
}

}  // namespace outbox::relay
