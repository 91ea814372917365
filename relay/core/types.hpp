#pragma once
// The relay's words (docs/architecture.md, glossary) as types. Standard library only.

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/strong_id.hpp"
#include "base/uuid.hpp"

namespace outbox::relay {

using RowId = StrongId<struct RowIdTag, std::int64_t>;
using Shard = StrongId<struct ShardTag, std::int16_t>;  ///< 0..63, hash of the key
using LaneId = StrongId<struct LaneTag, std::int16_t>;  ///< shard % lanes
using Epoch = StrongId<struct EpochTag, std::int64_t>;  ///< raised by every take-over of a lane
using Partition = StrongId<struct PartitionTag, std::int32_t>;
using Offset = StrongId<struct OffsetTag, std::int64_t>;

/// What names a row for longer than one statement. Ids come from a sequence, which gives them out again after a
/// failover to a standby that lags, a restore, or TRUNCATE … RESTART IDENTITY: an id alone may be another
/// row's by then.
struct RowName {
  RowId id;
  Uuid msg_id;
  friend auto operator<=>(const RowName&, const RowName&) = default;
};

inline constexpr std::int16_t shard_count = 64;
inline constexpr Shard no_shard{-1};

using LaneSet = std::bitset<static_cast<std::size_t>(shard_count)>;  ///< bit n: lane n

[[nodiscard]] constexpr LaneId lane_of(Shard shard, std::int16_t lanes) {
  return LaneId{static_cast<std::int16_t>(shard.value % lanes)};
}

/// Where a row version was read. A hint only: whoever uses it checks the id again.
struct RowAddress {
  std::uint32_t table = 0;  ///< the partition's oid
  std::uint32_t block = 0;
  std::uint16_t line = 0;
};

struct Header {
  std::string_view name;
  std::optional<std::string_view> value;
};

enum class Held { no, yes };
enum class Locked { no, yes };

/// One claimed row. Its views point into the memory of the Batch that brought it.
struct Message {
  RowId id;
  Shard shard;
  RowAddress address;
  Uuid msg_id;
  std::string_view topic;
  std::optional<std::string_view> key;   ///< nullopt: no order, spread over the partitions
  std::optional<std::string_view> body;  ///< nullopt: a tombstone
  std::span<const Header> headers;       ///< the row's own, as they are
  std::optional<Partition> partition;    ///< named by a column of the row; the topic may not have it
  WallTime created_at;
  std::optional<WallTime> available_at;  ///< set: a scheduled row that is due
  std::int32_t generation = 0;
  Held held = Held::no;  ///< a hold on its key or topic existed in the claim's snapshot
  /// A due row that somebody else has locked: it came without its body, and is not sent before they let go.
  Locked locked = Locked::no;
};

/// Where a scheduled row stands among the due ones.
struct DuePlace {
  WallTime available_at;
  RowId id;
  friend auto operator<=>(const DuePlace&, const DuePlace&) = default;
};

[[nodiscard]] inline RowName name_of(const Message& message) {
  return {message.id, message.msg_id};
}

/// What the database said at the end of a claim.
struct ClaimHorizon {
  std::int64_t oldest_running = 0;    ///< every transaction with a smaller number has ended
  std::int64_t next_transaction = 0;  ///< every transaction that has a number has a smaller one
  std::int64_t releases = 0;          ///< how often rows were made PENDING again
  bool transaction_first = false;     ///< a row's transaction has its number before the row draws its id
};

/// What one claim brought, all seen at one moment: `rows` by (shard, id), `due` by (available_at, id).
struct Batch {
  std::vector<Message> rows;
  std::vector<Message> due{};
  bool more = false;         ///< a limit cut it short: there is backlog
  std::vector<Shard> cut{};  ///< where: shards that may hold more rows; empty though `more`: any of them;
                             ///< no_shard alone: only due rows were cut short
  std::optional<DuePlace> due_cut{};  ///< due rows were cut short: those behind this place may be missing
  ClaimHorizon horizon{};
  std::optional<WallTime> next_due{};  ///< the earliest available_at still ahead, where the claim looked
  std::vector<std::shared_ptr<const void>> memory{};
};

struct Lease {
  LaneId lane;
  Epoch epoch;
};

/// What a failed delivery means; the table is relay/core/kafka/errors.hpp.
enum class Refusal {
  unsent,    ///< purged or the producer ended: it may or may not be in Kafka; send it again
  message,   ///< this message, or one of its batch, will never be taken (too large, invalid)
  topic,     ///< the topic is missing, forbidden or misconfigured: others can go on
  producer,  ///< the producer is finished: restart() it
};

enum class TopicState { present, missing, forbidden };

enum class AfterSent { mark, erase };
enum class OldRows { remove, keep };  ///< what was sent before the replay window
enum class OnDead { hold_key, let_pass };
enum class HeaderPreset { plain, cloudevents, debezium };
/// What happens to the W3C header `tracestate` of a row that has `traceparent`, which itself always passes as
/// it is. stamp: `outboxd=PIPELINE:ID` stands first in it, so that a trace leads to the row.
enum class Tracestate { pass, stamp };

}  // namespace outbox::relay

template <>
struct std::hash<outbox::relay::RowName> {
  std::size_t operator()(const outbox::relay::RowName& name) const noexcept {
    return std::hash<outbox::Uuid>{}(name.msg_id) ^ std::hash<outbox::relay::RowId>{}(name.id);
  }
};
