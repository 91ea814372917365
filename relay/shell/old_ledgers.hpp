#pragma once
// Settles the lanes of earlier counts: each is fenced, and what it committed last is marked, before a lane of
// the present count is opened. Whoever has lane 0 does it, under that lane's lease; the others wait until it
// is done. Nothing else of the source is in flight meanwhile. Part of Transactions; the loop's thread.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.hpp"
#include "relay/core/lanes/lane_leases.hpp"
#include "relay/ports/transactor.hpp"
#include "relay/shell/workbench.hpp"

namespace outbox::relay {

class OldLedgers {
 public:
  OldLedgers(Workbench& bench, Transactor& transactor, const LaneLeases& leases)
      : bench_(bench), transactor_(transactor), leases_(leases) {}

  /// Known, and nothing older is left: lanes may be opened.
  [[nodiscard]] bool settled() const { return standing_ && standing_->older.empty(); }
  [[nodiscard]] const LedgerStanding& standing() const { return *standing_; }
  /// Why it does not make progress; empty: it does, or nothing was tried yet.
  [[nodiscard]] const std::string& error() const { return error_; }
  void pump(MonoTime now);
  [[nodiscard]] MonoTime wake_at() const { return busy() ? MonoTime::max() : again_at_; }
  /// The lanes were lost or dealt again: all is asked again.
  void forget();

 private:
  [[nodiscard]] bool busy() const { return asking_ || under_way_ > 0; }
  void ask();
  void list_old_lanes();
  void settle(LedgerLane ledger_lane, std::int16_t lanes);
  void opened(LedgerLane ledger_lane, std::int16_t lanes, Result<std::vector<LedgerRow>> rows, Lease lease);
  void lane_settled(LedgerLane ledger_lane);
  void all_settled();
  void later(const Error& error, const char* what);

  struct OldLane {
    LedgerLane ledger_lane;
    std::int16_t lanes = 0;
  };
  Workbench& bench_;
  Transactor& transactor_;
  const LaneLeases& leases_;
  std::optional<LedgerStanding> standing_;
  std::vector<OldLane> to_do_;
  std::int64_t under_way_ = 0;
  bool asking_ = false;
  std::uint64_t life_ = 0;  // answers to an earlier one are left alone
  std::string error_;
  MonoTime again_at_{};
  Backoff backoff_{{Millis{100}, Millis{5000}}, 7};
};

/// What the ledger of lane `of` names is marked where it still has to be, under `lease`; a row that is not of
/// that lane is left alone. `done`: fine; a lost lease is an error (retry).
void mark_ledger_rows(Workbench& bench, const std::vector<LedgerRow>& rows, LaneOf of, Lease lease,
                      DoneStatus done);

}  // namespace outbox::relay
