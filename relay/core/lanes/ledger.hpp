#pragma once
// The ledger: what a lane's last Kafka transaction carried, told by a record inside that same transaction.
// After a crash it says which rows are in Kafka although nobody marked them. One record a transaction, in a
// topic of its own, one partition a lane; only the newest committed one of a lane matters, since the
// transaction before it was marked before this one was committed. Pure.
//
// A record's value, version 2 (docs/protocol.md): the byte 2, the ledger's id (16 bytes), then varints: the
// generation of the lanes, the lane, the number of rows, and per row the differences to the row before of id,
// partition and offset (zigzag), the row's generation, and its msg_id (16 bytes). Version 1 had no msg_ids, and
// is refused: an id is given out again once a database was restored, and names another row then.

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/uuid.hpp"
#include "relay/core/types.hpp"

namespace outbox::relay {

/// A lane of one generation of lanes: whoever works it has its transactional id.
struct LedgerLane {
  std::int32_t generation = 0;  ///< of the lanes, from 1
  LaneId lane;
  friend auto operator<=>(const LedgerLane&, const LedgerLane&) = default;
};

/// One row that a transaction carried, and where it is if that transaction was committed.
struct LedgerRow {
  RowId id;
  Uuid msg_id;
  std::int32_t generation = 0;  ///< of the row's sending: a replay has a higher one
  Partition partition;
  Offset offset;
  friend bool operator==(const LedgerRow&, const LedgerRow&) = default;
};

/// Of one record: even if each of its numbers took its longest form, it stays below the 1,000,000 bytes that a
/// producer and a topic take by default.
inline constexpr std::int32_t ledger_rows_max = 20'000;

struct LedgerEntry {
  Uuid ledger;  ///< which outbox table wrote it
  LedgerLane ledger_lane;
  std::vector<LedgerRow> rows;
  friend bool operator==(const LedgerEntry&, const LedgerEntry&) = default;
};

/// The key of a lane's records, "GENERATION/LANE": compaction keeps the newest of each.
[[nodiscard]] std::string ledger_key(LedgerLane ledger_lane);
/// "outboxd-PIPELINE-LEDGER-GENERATION-LANE": the same for each owner of the lane, and for nobody else.
[[nodiscard]] std::string transactional_id(std::string_view pipeline, const Uuid& ledger,
                                           LedgerLane ledger_lane);
/// The ledger's topic where none is configured.
[[nodiscard]] std::string ledger_topic_of(std::string_view pipeline);

[[nodiscard]] std::string encode_ledger_entry(const LedgerEntry& entry);
/// Errors: fatal: cut short, too long, of another version, or with numbers that no row has: what it would
/// have said is unknown, so nothing may be sent.
[[nodiscard]] Result<LedgerEntry> decode_ledger_entry(std::string_view value);

}  // namespace outbox::relay
