#include "relay/shell/old_ledgers.hpp"

#include <algorithm>
#include <utility>

namespace outbox::relay {
namespace {

constexpr Millis others_settle{100};             // asked again so often, while another instance does it
constexpr std::int64_t at_once_max = 8;          // seats under way; each has a thread
constexpr std::int64_t batch_bytes = 1'000'000;  // nothing is sent by an old seat

}  // namespace

void mark_ledger_rows(Workbench& bench, const std::vector<LedgerRow>& rows, Lease lease, DoneStatus done) {
  std::vector<SentRow> sent;
  sent.reserve(rows.size());
  // Where the row is in the table nobody knows any more: it is looked up by its id.
  for (const LedgerRow& row : rows)
    sent.push_back({row.id, {}, row.generation, lease, row.partition, row.offset});
  bench.source.mark(
      std::move(sent), bench.options.after_sent, [done = std::move(done)](Result<MarkReply> reply) {
        if (!reply) return done(failure(std::move(reply.error())));
        const bool lost = std::ranges::any_of(
            reply->exceptions, [](const MarkException& e) { return e.outcome == MarkOutcome::lane_lost; });
        if (lost) return done(failure(Disposition::retry, "another instance has the lane"));
        done({});
      });
}

void OldLedgers::forget() {
  for (const OldSeat& old : to_do_) transactor_.close(old.seat);
  life_ += 1;
  standing_.reset();
  to_do_.clear();
  under_way_ = 0;
  asking_ = false;
  error_.clear();
  again_at_ = {};
}

void OldLedgers::pump(MonoTime now) {
  if (settled() || busy() || now < again_at_ || !tenure_.active()) return;
  if (!standing_) return ask();
  const auto first = tenure_.leases().front();
  if (!first) {
    standing_.reset();
    again_at_ = now + others_settle;
    return;
  }
  if (to_do_.empty()) list_seats();
  const auto now_too = std::min<std::int64_t>(at_once_max, std::ssize(to_do_));
  under_way_ = now_too;
  for (std::int64_t i = 0; i < now_too; ++i) {
    const OldSeat& old = to_do_[static_cast<std::size_t>(i)];
    settle(old.seat, old.lanes);
  }
}

void OldLedgers::ask() {
  asking_ = true;
  bench_.source.join_ledger([this, life = life_](Result<LedgerStanding> standing) {
    if (life != life_) return;
    asking_ = false;
    if (!standing) {
      later(standing.error(), "ledger_join_failed");
    } else if (standing->present.lanes != tenure_.lanes()) {
      again_at_ = bench_.loop.now() + others_settle;
      bench_.doubt_leases();
    } else {
      standing_ = std::move(*standing);
      error_.clear();
      backoff_.reset();
    }
    bench_.stir();
  });
}

void OldLedgers::list_seats() {
  for (const LaneGeneration& generation : standing_->older)
    for (std::int16_t lane = 0; lane < generation.lanes; ++lane)
      to_do_.push_back({{generation.number, LaneId{lane}}, generation.lanes});
  bench_.log.info("old_ledgers",
                  {{"lanes", std::ssize(to_do_)}, {"next", "settled before anything is claimed"}});
}

void OldLedgers::settle(Seat seat, std::int16_t lanes) {
  const Lease lease = *tenure_.leases().front();
  transactor_.open({standing_->ledger, seat, lanes, batch_bytes},
                   [this, seat, lease, life = life_](Result<std::vector<LedgerRow>> rows) {
                     if (life == life_) opened(seat, std::move(rows), lease);
                   });
}

void OldLedgers::opened(Seat seat, Result<std::vector<LedgerRow>> rows, Lease lease) {
  if (!rows) {
    under_way_ -= 1;
    later(rows.error(), "old_ledger_failed");
    return bench_.stir();
  }
  mark_ledger_rows(bench_, *rows, lease, [this, seat, life = life_](const Status& status) {
    if (life != life_) return;
    under_way_ -= 1;
    if (status) {
      seat_settled(seat);
    } else {
      later(status.error(), "old_ledger_failed");
      bench_.doubt_leases();
    }
    bench_.stir();
  });
}

void OldLedgers::seat_settled(Seat seat) {
  transactor_.close(seat);
  std::erase_if(to_do_, [seat](const OldSeat& old) { return old.seat == seat; });
  if (to_do_.empty()) all_settled();
}

// Forgotten in the database; then asked anew, which also tells whether it was done under a lease that stood.
void OldLedgers::all_settled() {
  const auto first = tenure_.leases().front();
  if (!first) return;
  asking_ = true;
  bench_.source.settle_ledger(standing_->older, *first, [this, life = life_](const Status& status) {
    if (life != life_) return;
    asking_ = false;
    standing_.reset();
    if (!status) later(status.error(), "old_ledger_failed");
    bench_.stir();
  });
}

void OldLedgers::later(const Error& error, const char* what) {
  again_at_ = bench_.loop.now() + backoff_.next();
  error_ = error.text();
  bench_.log.warn(what, {{"error", error_}, {"next", "tried again; nothing is claimed until then"}});
}

}  // namespace outbox::relay
