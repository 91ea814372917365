#include "relay/shell/marker.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/crash_point.hpp"

namespace outbox::relay {

void Marker::pump(MonoTime now) {
  while (!acked_.empty() && under_way_ < bench_.options.marks_max && now >= retry_at_) {
    const auto count = std::min(acked_.size(), static_cast<std::size_t>(bench_.options.mark_rows_max));
    const auto end = acked_.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<Row*> rows(acked_.begin(), end);
    acked_.erase(acked_.begin(), end);
    send(std::move(rows));
  }
}

void Marker::send(std::vector<Row*> rows) {
  std::vector<SentRow> sent;
  sent.reserve(rows.size());
  for (const Row* row : rows)
    sent.push_back({row->message.id, row->message.msg_id, row->message.address, row->message.generation,
                    row->lease, row->partition, row->offset});
  under_way_ += 1;
  bench_.counters.marks += 1;
  bench_.source.mark(
      std::move(sent), bench_.options.after_sent,
      [this, rows = std::move(rows), asked = bench_.loop.now()](Result<MarkReply> reply) mutable {
        under_way_ -= 1;
        bench_.timings.mark.observe(took(asked, bench_.loop.now()));
        crash_here(CrashPoint::relay_marked, reply);
        if (reply)
          marked(rows, *reply);
        else
          failed(std::move(rows), reply.error());
        bench_.schedule_turn();
      });
  crash_here(CrashPoint::relay_mark_asked);
}

void Marker::marked(const std::vector<Row*>& rows, const MarkReply& reply) {
  if (std::exchange(failing_, false)) bench_.log.info("mark_recovered");
  backoff_.reset();
  std::int64_t not_marked = 0;
  std::int64_t lane_lost = 0;
  std::int64_t replaced = 0;
  for (const MarkException& e : reply.exceptions) {
    if (e.outcome == MarkOutcome::marked) continue;
    if (e.outcome == MarkOutcome::cancelled) {
      bench_.log.warn("sent_though_cancelled", {{"row", e.id.value}});
      continue;
    }
    not_marked += 1;
    if (e.outcome == MarkOutcome::lane_lost) lane_lost += 1;
    if (e.outcome == MarkOutcome::replaced) replaced += 1;
    if (e.outcome == MarkOutcome::gone) bench_.log.warn("sent_row_is_gone", {{"row", e.id.value}});
  }
  if (replaced > 0) bench_.note_replaced(replaced, "a mark");
  if (lane_lost > 0) {
    bench_.counters.lane_lost += lane_lost;
    bench_.log.warn("marks_refused", {{"rows", lane_lost}, {"next", "the lane's owner sends them again"}});
    bench_.doubt_leases();
  }
  bench_.counters.marked += static_cast<std::int64_t>(rows.size()) - not_marked;
  if (watcher_) tell(rows, reply);
  for (Row* row : rows) bench_.flight.settle(*row);
  bench_.note_progress();
}

void Marker::tell(const std::vector<Row*>& rows, const MarkReply& reply) {
  std::set<RowName> lost;
  for (const MarkException& e : reply.exceptions)
    if (e.outcome == MarkOutcome::lane_lost) lost.insert({e.id, e.msg_id});
  for (const Row* row : rows)
    watcher_(*row, lost.contains(name_of(row->message)) ? Outcome::lost : Outcome::settled);
}

void Marker::failed(std::vector<Row*> rows, const Error& error) {
  acked_.insert(acked_.begin(), rows.begin(), rows.end());
  retry_at_ = bench_.loop.now() + backoff_.next();
  bench_.counters.marks_failed += 1;
  if (!std::exchange(failing_, true))
    bench_.log.warn("mark_failed", {{"rows", static_cast<std::int64_t>(rows.size())},
                                    {"error", error.text()},
                                    {"next", "repeated until it is answered"}});
}

}  // namespace outbox::relay
