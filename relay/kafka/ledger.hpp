#pragma once
// Reads what the ledger says last of a lane. Blocking: for a thread of its own. For the sources of this
// folder only.

#include <atomic>
#include <optional>
#include <string>

#include "relay/core/lanes/ledger.hpp"
#include "relay/kafka/options.hpp"

namespace outbox::relay {

struct LedgerRecord {
  LedgerEntry entry;
  Offset offset;  ///< in the ledger's partition
  WallTime written_at;
};

/// Shape: the newest committed record of the lane below the end of its partition as it was at the
/// call; nullopt: there is none. The end is the high watermark, as a read_uncommitted reader has it: a
/// read_committed one does not see what lies above another's open transaction. Then read as committed until
/// the *position* has reached it, since markers and aborted records take offsets and are never handed out.
/// A record that no lane wrote is left aside, which `options.on_log` is told.
/// Errors: retry: not reached within `patience`, for whatever reason; fatal: a record that cannot be read, or
/// only such that no lane wrote: compaction may have put them in the place of the lane's.
[[nodiscard]] Result<std::optional<LedgerRecord>> read_ledger(const KafkaOptions& options,
                                                              const std::string& topic,
                                                              LedgerLane ledger_lane, Millis patience,
                                                              const std::atomic<bool>& stopping);

}  // namespace outbox::relay
