#include "relay/shell/settler.hpp"

#include <algorithm>
#include <utility>

#include "base/crash_point.hpp"
#include "relay/core/message/text.hpp"

namespace outbox::relay {

namespace {

HoldTarget key_of(const Message& message) {
  return {HoldScope::key, std::string{message.topic}, std::string{*message.key}};
}

}  // namespace

std::optional<HoldTarget> Settler::hold_of(const Message& message) const {
  if (bench_.options.on_dead != OnDead::hold_key || !message.key) return std::nullopt;
  return key_of(message);
}

void Settler::bury(Row& row, std::string reason) {
  row.stage = Stage::leaving;
  const auto hold = hold_of(row.message);
  if (hold) bench_.blocklist.block(*hold);
  bench_.log.warn("message_dead",
                  {{"row", row.message.id.value}, {"topic", row.message.topic}, {"reason", reason}});
  to_bury_.push_back({&row,
                      {row.message.id, row.message.msg_id, row.message.address, row.lease,
                       bounded_text(reason, last_error_bytes_max), hold, row.message.generation}});
  bench_.schedule_turn();
}

void Settler::set_held(Row& row) {
  row.stage = Stage::leaving;
  close_gate(row);
  to_hold_.push_back(&row);
  bench_.schedule_turn();
}

void Settler::pump(MonoTime now) {
  if (now < retry_at_) return;
  if (!burying_ && !to_bury_.empty()) bury_next();
  if (!holding_ && !to_hold_.empty()) hold_all();
}

void Settler::bury_next() {
  burying_ = true;
  bench_.source.bury(to_bury_.front().dead, [this](Status status) {
    crash_here(CrashPoint::relay_buried, status);
    burying_ = false;
    answered(status, "bury");
    if (status) {
      const Burial burial = std::move(to_bury_.front());
      to_bury_.pop_front();
      if (burial.dead.hold) bench_.blocklist.recorded(*burial.dead.hold, bench_.plan.newest());
      bench_.counters.dead += 1;
      bench_.flight.settle(*burial.row);
      bench_.note_progress();
    }
    bench_.schedule_turn();
  });
  crash_here(CrashPoint::relay_bury_asked);
}

// While the row is on its way to HELD, claims leave it out. Should its hold be released meanwhile, a later
// row of its key would be claimed without it and pass: so the key stays closed until claims see the row
// again, HELD or PENDING.
void Settler::close_gate(const Row& row) {
  if (row.message.key) bench_.blocklist.block(key_of(row.message));
}

void Settler::held(Row& row) {
  if (row.message.key) bench_.blocklist.recorded(key_of(row.message), bench_.plan.newest());
  bench_.unsent(row.message);  // where its hold was gone already it is still PENDING
  bench_.flight.settle(row);
}

void Settler::hold_all() {
  holding_ = true;
  std::vector<Row*> rows = std::exchange(to_hold_, {});
  std::vector<RowName> names;
  names.reserve(rows.size());
  for (const Row* row : rows) names.push_back(name_of(row->message));
  bench_.source.set_held(std::move(names), [this, rows = std::move(rows)](Status status) {
    crash_here(CrashPoint::relay_rows_held, status);
    holding_ = false;
    answered(status, "set_held");
    if (status) {
      bench_.counters.held += static_cast<std::int64_t>(rows.size());
      for (Row* row : rows) held(*row);
      bench_.note_progress();
      for (const Row* row : to_hold_) close_gate(*row);
    } else {
      to_hold_.insert(to_hold_.begin(), rows.begin(), rows.end());
    }
    bench_.schedule_turn();
  });
}

void Settler::answered(const Status& status, const char* what) {
  if (status) {
    backoff_.reset();
    return;
  }
  retry_at_ = bench_.loop.now() + backoff_.next();
  bench_.log.warn("write_failed", {{"what", what}, {"error", status.error().text()}, {"next", "repeated"}});
}

}  // namespace outbox::relay
