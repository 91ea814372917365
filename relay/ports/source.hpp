#pragma once
// The outbox table and what lies next to it, as the relay's shell needs them. Adapter: relay/postgres,
// stand-in: tests/support/fakes; one contract suite (tests/contract/source_contract.hpp) runs over both.
// Thread and answers: relay/ports/loop.hpp.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "relay/core/claim/blocklist.hpp"
#include "relay/core/claim/claim_plan.hpp"
#include "relay/core/types.hpp"
#include "relay/ports/loop.hpp"

namespace outbox::relay {

struct ClaimRequest {
  Look look = Look::flat;
  std::vector<Shard> shards;    ///< only rows of these
  std::vector<RowName> except;  ///< in flight already
  std::int32_t rows_max = 5000;
  std::int64_t bytes_max = 8 << 20;  ///< of bodies; one row is always allowed, whatever its size
  /// By shard number: only rows with greater ids, RowId{0}: all. Empty: no floors.
  std::vector<RowId> floors{};
  std::int64_t releases = -1;  ///< where the database counts others, the floors do not hold
};

/// A lane, and into how many the shards were dealt when it was one.
struct LaneOf {
  LaneId lane;
  std::int16_t lanes = 0;
};

struct SentRow {
  RowId id;
  Uuid msg_id;
  RowAddress address;
  std::int32_t generation = 0;
  Lease lease;  ///< under which it was claimed
  Partition partition;
  Offset offset;
  std::optional<LaneOf> of{};  ///< set: a row whose shard is of another lane is not the one that was sent
};

enum class MarkOutcome {
  marked,     ///< it is SENT (or deleted) by this mark, or by an earlier try of it
  cancelled,  ///< it was cancelled meanwhile: recorded as sent, since it was
  lane_lost,  ///< another owner has the lane: not marked, the owner will send it again
  gone,       ///< no such row any more, or of a later generation: somebody deleted or replayed it
  replaced,   ///< its id is another row's: the database went back in time, or the sequence began again
};
struct MarkException {
  RowId id;
  Uuid msg_id;
  MarkOutcome outcome;
};
/// Rows not named in `exceptions` are marked.
struct MarkReply {
  std::vector<MarkException> exceptions;
};

struct DeadRow {
  RowId id;
  Uuid msg_id;
  RowAddress address;
  Lease lease;
  std::string reason;              ///< valid UTF-8, no NUL, at most 1,000 bytes
  std::optional<HoldTarget> hold;  ///< put in place in the same transaction
  std::int32_t generation = 0;     ///< one that was retried meanwhile is another sending, and stays
};

/// As the option `delivery` spells them.
inline constexpr std::string_view at_least_once = "at_least_once";
inline constexpr std::string_view exactly_once = "exactly_once";

struct LeaseRequest {
  std::string owner;
  std::int16_t lanes = 8;
  Millis ttl{5000};
  double sent_per_s = 0;                              ///< shown by `outboxd status`
  std::string delivery = std::string{at_least_once};  ///< instances that work must have the same
  std::string stopped{};  ///< why lanes stand still, shown by `outboxd status`; empty: none does
};
/// Instances that work now, and deliver otherwise.
struct Differing {
  std::string delivery;
  std::string instance;  ///< one of them
};
struct LeaseReply {
  std::vector<Lease> held;     ///< this owner's, also what exceeds its share
  std::int16_t lanes = 0;      ///< into how many the shards are dealt now, whatever was asked for
  std::int16_t share = 0;      ///< how many are this owner's fair part; 0 too until another count can begin
  std::int32_t instances = 1;  ///< alive, this one among them
  std::string other_owner{};   ///< somebody who has a lane, if anybody
  std::optional<Millis> other_ends{};  ///< when the first lease of another runs out, by the database's clock
  /// Why an operator has paused the whole pipeline; nullopt: nobody has. Nothing is to be claimed then.
  std::optional<std::string> paused{};
  /// Set: this owner has no share until those have given all lanes back.
  std::optional<Differing> differs{};
};
enum class Leaving { no, yes };
enum class Release { done, kept };

/// Lanes of one count. Another count is another generation.
struct LaneGeneration {
  std::int32_t number = 0;
  std::int16_t lanes = 0;
};
/// Exactly-once delivery: where the ledger stands.
struct LedgerStanding {
  Uuid ledger;                          ///< the table's own name for itself in Kafka
  LaneGeneration present{};             ///< as the lanes are dealt now
  std::vector<LaneGeneration> older{};  ///< not settled: nothing may be claimed before they are
};

/// The outbox table and its neighbours.
class Source {
 public:
  struct Events {
    std::function<void()> on_hint;   ///< a NOTIFY came: there may be rows
    std::function<void()> on_lanes;  ///< a NOTIFY came: lanes are free, or instances came or left
    std::function<void(LinkState, const std::string&)> on_link;  ///< changes only; the text says why
    std::function<void()> on_pooler{};  ///< once: a pooler stands between, and no hint will ever come
  };
  virtual ~Source() = default;
  virtual void start(Events events) = 0;
  virtual void stop() = 0;

  /// Shape: unsent rows by state, never by a cursor: every row handed out is committed *and durable* (the
  /// barrier is the adapter's). Rows whose available_at lies ahead are not handed out. Errors: retry,
  /// reconnect, fatal.
  virtual void claim(ClaimRequest request, Done<Batch> done) = 0;
  /// Shape: sets rows SENT with partition and offset, or deletes them, where they are PENDING or HELD, of
  /// that id, msg_id and generation, and the lane's epoch is still the lease's. Durable when answered. Errors: retry,
  /// reconnect, in_doubt (safe to repeat).
  virtual void mark(std::vector<SentRow> rows, AfterSent after, Done<MarkReply> done) = 0;
  /// Shape: the row becomes DEAD with its reason, and the hold is there, in one transaction; a repeat changes
  /// nothing. A lost lane, a row no longer PENDING, or another one of that id: nothing happens and it succeeds.
  virtual void bury(DeadRow row, DoneStatus done) = 0;
  /// Puts a relay's own reason for a hold in place (Kafka's, of a topic; a dead row's, of a key); a repeat
  /// changes nothing. Beside it there may be operators' reasons.
  virtual void hold(HoldTarget target, std::string reason, DoneStatus done) = 0;
  /// PENDING rows among `rows` whose hold still exists become HELD; the others stay.
  virtual void set_held(std::vector<RowName> rows, DoneStatus done) = 0;
  /// Ends a relay's own reason. Where it was the last, one transaction: every HELD row of the target back to
  /// PENDING, and the hold is gone. An operator's stays, and the rows with it: kept.
  virtual void release(HoldTarget target, Done<Release> done) = 0;
  /// Topics that have a relay's reason; those that only operators hold are not among them.
  virtual void held_topics(Done<std::vector<std::string>> done) = 0;

  /// Announces this owner, renews what it has, and takes free lanes up to its fair share. The lease runs from
  /// before the request was sent. Every change of a lane's owner raises its epoch.
  virtual void lease(LeaseRequest request, Done<LeaseReply> done) = 0;
  /// Frees those of `lanes` that this owner has under just these epochs, so a call that comes late does no
  /// harm. Only while nothing of them is in flight. Leaving: all it has, and it is no instance any more.
  virtual void give_back(std::string owner, std::vector<Lease> lanes, Leaving leaving, DoneStatus done) = 0;

  /// The partition count that keys of `topic` are spread over: the pinned one, or `current` if there is none
  /// yet.
  virtual void pin(std::string topic, std::int32_t current, Done<std::int32_t> done) = 0;
  /// Replaces the pinned count. Only while nothing of the topic is in flight.
  virtual void repin(std::string topic, std::int32_t partitions, DoneStatus done) = 0;

  /// Notes, durably, that the lanes of the present generation write a ledger, and tells where it stands. Only
  /// after lease() was answered. Errors: retry, reconnect, in_doubt (safe to repeat).
  virtual void join_ledger(Done<LedgerStanding> done) = 0;
  /// Older generations are settled: each lane of them fenced, and what it committed last is marked. They are
  /// forgotten, unless `lease` was lost meanwhile; join_ledger() tells.
  virtual void settle_ledger(std::vector<LaneGeneration> settled, Lease lease, DoneStatus done) = 0;

  /// Until `for_how_long` has passed, by the database's clock, inserts send a NOTIFY. Millis{0}: awake.
  virtual void declare_asleep(Millis for_how_long, DoneStatus done) = 0;
};

}  // namespace outbox::relay
