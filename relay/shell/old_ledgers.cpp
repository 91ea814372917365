#include "relay/shell/old_ledgers.hpp"

#include <algorithm>
#include <utility>

namespace outbox::relay {
namespace {

constexpr Millis others_settle{100};             // asked again so often, while another instance does it
constexpr std::int64_t at_once_max = 8;          // lanes under way; each has a thread
constexpr std::int64_t batch_bytes = 1'000'000;  // nothing is sent by an old lane

}  // namespace

void mark_ledger_rows(Workbench& bench, const std::vector<LedgerRow>& rows, LaneOf of, Lease lease,
                      DoneStatus done) {
  std::vector<SentRow> sent;
  sent.reserve(rows.size());
  // Where the row is in the table nobody knows any more: it is looked up by its id.
  for (const LedgerRow& row : rows)
    sent.push_back({row.id, row.msg_id, {}, row.generation, lease, row.partition, row.offset, of});
  bench.source.mark(
      std::move(sent), bench.options.after_sent, [&bench, done = std::move(done)](Result<MarkReply> reply) {
        if (!reply) return done(failure(std::move(reply.error())));
        const auto replaced =
            std::ranges::count(reply->exceptions, MarkOutcome::replaced, &MarkException::outcome);
        if (replaced > 0) bench.note_replaced(replaced, "the ledger in Kafka");
        const bool lost = std::ranges::any_of(
            reply->exceptions, [](const MarkException& e) { return e.outcome == MarkOutcome::lane_lost; });
        if (lost) return done(failure(Disposition::retry, "another instance has the lane"));
        done({});
      });
}

void OldLedgers::forget() {
  for (const OldLane& old : to_do_) transactor_.close(old.ledger_lane);
  life_ += 1;
  standing_.reset();
  to_do_.clear();
  under_way_ = 0;
  asking_ = false;
  error_.clear();
  again_at_ = {};
}

void OldLedgers::pump(MonoTime now) {
  if (settled() || busy() || now < again_at_ || !leases_.active()) return;
  if (!standing_) return ask();
  const auto first = leases_.leases().front();
  if (!first) {
    standing_.reset();
    again_at_ = now + others_settle;
    return;
  }
  if (to_do_.empty()) list_old_lanes();
  const auto now_too = std::min<std::int64_t>(at_once_max, std::ssize(to_do_));
  under_way_ = now_too;
  for (std::int64_t i = 0; i < now_too; ++i) {
    const OldLane& old = to_do_[static_cast<std::size_t>(i)];
    settle(old.ledger_lane, old.lanes);
  }
}

void OldLedgers::ask() {
  asking_ = true;
  bench_.source.join_ledger([this, life = life_](Result<LedgerStanding> standing) {
    if (life != life_) return;
    asking_ = false;
    if (!standing) {
      later(standing.error(), "ledger_join_failed");
    } else if (standing->present.lanes != leases_.lanes()) {
      again_at_ = bench_.loop.now() + others_settle;
      bench_.doubt_leases();
    } else {
      standing_ = std::move(*standing);
      error_.clear();
      backoff_.reset();
    }
    bench_.schedule_turn();
  });
}

void OldLedgers::list_old_lanes() {
  for (const LaneGeneration& generation : standing_->older)
    for (std::int16_t lane = 0; lane < generation.lanes; ++lane)
      to_do_.push_back({{generation.number, LaneId{lane}}, generation.lanes});
  bench_.log.info("old_ledgers",
                  {{"lanes", std::ssize(to_do_)}, {"next", "settled before anything is claimed"}});
}

void OldLedgers::settle(LedgerLane ledger_lane, std::int16_t lanes) {
  const Lease lease = *leases_.leases().front();
  transactor_.open({standing_->ledger, ledger_lane, lanes, batch_bytes},
                   [this, ledger_lane, lanes, lease, life = life_](Result<std::vector<LedgerRow>> rows) {
                     if (life == life_) opened(ledger_lane, lanes, std::move(rows), lease);
                   });
}

void OldLedgers::opened(LedgerLane ledger_lane, std::int16_t lanes, Result<std::vector<LedgerRow>> rows,
                        Lease lease) {
  if (!rows) {
    under_way_ -= 1;
    later(rows.error(), "old_ledger_failed");
    return bench_.schedule_turn();
  }
  const LaneOf of{ledger_lane.lane, lanes};
  mark_ledger_rows(bench_, *rows, of, lease, [this, ledger_lane, life = life_](const Status& status) {
    if (life != life_) return;
    under_way_ -= 1;
    if (status) {
      lane_settled(ledger_lane);
    } else {
      later(status.error(), "old_ledger_failed");
      bench_.doubt_leases();
    }
    bench_.schedule_turn();
  });
}

void OldLedgers::lane_settled(LedgerLane ledger_lane) {
  transactor_.close(ledger_lane);
  std::erase_if(to_do_, [ledger_lane](const OldLane& old) { return old.ledger_lane == ledger_lane; });
  if (to_do_.empty()) all_settled();
}

// Forgotten in the database; then asked again, which also tells whether it was done under a lease that stood.
void OldLedgers::all_settled() {
  const auto first = leases_.leases().front();
  if (!first) return;
  asking_ = true;
  bench_.source.settle_ledger(standing_->older, *first, [this, life = life_](const Status& status) {
    if (life != life_) return;
    asking_ = false;
    standing_.reset();
    if (!status) later(status.error(), "old_ledger_failed");
    bench_.schedule_turn();
  });
}

void OldLedgers::later(const Error& error, const char* what) {
  again_at_ = bench_.loop.now() + backoff_.next();
  error_ = error.text();
  bench_.log.warn(what, {{"error", error_}, {"next", "tried again; nothing is claimed until then"}});
}

}  // namespace outbox::relay
