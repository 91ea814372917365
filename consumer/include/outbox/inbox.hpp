#pragma once
// Exactly one effect per message, without Kafka: an Inbox judges records and runs the handler for the fresh
// ones, dedup row and handler in one transaction. Consumer is an Inbox behind a Kafka loop; a service with a
// loop of its own uses the Inbox directly and keeps two rules: offer a partition's records in order, and move
// its offset only past records whose fate is not `failed` or `waiting`.
//
// Identity is the msg_id alone, under the consumer's name. The payload's hash tells a duplicate from a
// conflict: it is the SHA-256 of the body's bytes, and 32 zero bytes for a tombstone, so that null and empty
// differ; the key, the headers and all times are left out of it.
//
// Lifecycle: constructed (no connection yet) → process() … → destroyed. Thread: one at a time, but for
// cancel().

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "outbox/foreign_id.hpp"
#include "outbox/handler.hpp"

namespace outbox {

struct Outcome;

/// What to do about a message that comes after a later one of its key.
enum class Guard {
  none,    ///< it is applied
  by_seq,  ///< it is stale where a higher outbox-seq of its source, topic and key was applied. Costs a
           ///< statement for each batch, and a row in inbox_seq for each key. A message without a key or a
  ///< readable outbox-seq is never stale, nor is a scheduled one (outbox-due-at), whose number is that of
  ///< its insert; and none is stale because of it.
};

/// What becomes of a message whose handler failed attempts_max times.
enum class AfterAttempts {
  block,     ///< it is tried on, and its partition waits behind it: nothing is ever out of order, and a
             ///< person must act
  park_key,  ///< it goes to dead_msgs, and its key is parked: later messages of the key follow it there, in
             ///< order, until a retry has emptied the queue. Other keys go on. Without a key: dead_letter
  dead_letter,  ///< it alone goes to dead_msgs, and later messages of its key pass it
};

/// A horizon that no partition is ever older than.
inline constexpr std::chrono::hours forever = std::chrono::hours::max();

struct InboxOptions {
  std::string name{};      ///< the consumer's name in processed_msgs: never change it, never share it
  std::string postgres{};  ///< libpq URI or keyword=value string of the service's own database
  std::string schema =
      "public";           ///< where processed_msgs, dead_msgs and the service's outbox are; case matters
  int attempts_max = 10;  ///< of a handler that fails for a reason of the message's; 1..1000
  AfterAttempts after_attempts = AfterAttempts::park_key;
  /// How long a message's handler may meet what no message is to blame for (no such table or column, no
  /// privilege) before that counts as the message's own failure after all, and uses up attempts_max. Until
  /// then it waits, with its partition, and on_outcome is told at each try.
  std::chrono::milliseconds environment_patience = std::chrono::hours{1};
  Guard guard = Guard::none;
  /// Names the messages of producers that send none of the three id headers. Asked about each record without
  /// an `outbox-id`, before ce_id and id; where it answers nothing, they decide. An answer that is a uuid is
  /// the id; any other text of 1 to 1,024 bytes becomes foreign_id(text); what it throws makes the record
  /// malformed. It must answer the same for every copy of a message, forever.
  IdOf id_of{};
  /// How long dedup remembers at least; 48 h or more, or `forever`. It must exceed everything that can delay
  /// or repeat a message: what its id says is older is never applied once its day was dropped. Written to
  /// inbox_consumer whenever a connection is made.
  std::chrono::hours horizon{24 * 30};
  /// Called once for each record that was settled, after the commit, whenever one is blocked, and for each
  /// try of a dead message that is wanted after all, on the
  /// thread of process(): the place to raise an alarm on a conflict, or to count what is stale. What it
  /// throws comes out of process().
  std::function<void(const Record&, const Outcome&)> on_outcome{};
};

/// What maintain() did.
struct Upkeep {
  bool busy = false;        ///< another session was at it: nothing was done here
  int made = 0;             ///< partitions, ahead of time
  int dropped = 0;          ///< partitions that every consumer with rows in them may forget
  std::int64_t purged = 0;  ///< rows of the DEFAULT partition, likewise
  int waiting = 0;          ///< what a lock held up: call again later
};

enum class Verdict {
  fresh,      ///< not seen before
  duplicate,  ///< seen before, with the same payload
  conflict,   ///< seen before, with another payload: never processed, never dropped in silence
  expired,    ///< its id is older than what is remembered: it may have been applied, so it never is again
  stale,      ///< a later message of its key was applied: see Guard, and Stale in handler.hpp
  malformed,  ///< no identity can be read from its headers
};
[[nodiscard]] std::string_view to_string(Verdict verdict) noexcept;

enum class Fate {
  applied,  ///< fresh, and the handler's writes are committed
  skipped,  ///< a duplicate, or stale: nothing to do
  dead,     ///< in dead_msgs, committed: conflict, expired, malformed, rejected, or attempts_max reached
  parked,   ///< in dead_msgs, committed: its key is parked, and it keeps its place in the key's queue
  failed,   ///< its handler failed, nothing was written: offer it again, with attempt + 1, after a while
  waiting,  ///< nothing was written, and it is not its fault: offer it again as it is, after a while
};
[[nodiscard]] std::string_view to_string(Fate fate) noexcept;

struct Outcome {
  Fate fate = Fate::waiting;
  Verdict verdict = Verdict::fresh;
  std::string reason{};                    ///< for people: why dead, parked, stale, failed or waiting
  std::chrono::milliseconds retry_wait{};  ///< of a failed one: what its handler asked for at least
  bool fenced = false;   ///< waiting, since a partition of its batch was claimed by another meanwhile
  bool blocked = false;  ///< a person must act, and it is tried on: it failed attempts_max times or more, and
                         ///< AfterAttempts::block says so; or see InboxOptions::environment_patience
  [[nodiscard]] bool settled() const { return fate != Fate::failed && fate != Fate::waiting; }
};

/// A partition whose offset is kept in the service's database.
struct PartitionClaim {
  std::int64_t epoch = 0;              ///< goes into Record::epoch
  std::optional<std::int64_t> next{};  ///< where to go on; nullopt: nothing of it was ever settled
};

class Inbox {
 public:
  /// Errors: std::invalid_argument names the option that is out of bounds.
  explicit Inbox(InboxOptions options);
  ~Inbox();
  Inbox(Inbox&&) noexcept;
  Inbox& operator=(Inbox&&) noexcept;

  /// Connects if need be, registers the horizon, and looks whether the tables are there and may be used.
  /// Errors: SqlError, with a message that says what to do.
  void check();

  /// Shape: one outcome for each record, in order. A batch is deduplicated by one statement and committed as
  /// one transaction; where a handler fails, it is rolled back and redone in parts, so that the failure is
  /// the failing message's alone, and those behind it in its partition are `waiting`. Errors: none thrown; a
  /// database that can't be reached is `waiting`. Blocks: for as long as the handlers and the database take.
  [[nodiscard]] std::vector<Outcome> process(std::span<const Record> records, const Handler& handler);
  [[nodiscard]] std::vector<Outcome> process(std::span<const Record> records, const SpanHandler& handler);
  [[nodiscard]] Outcome process(const Record& record, const Handler& handler);

  /// Applies dead messages that somebody wants applied after all (the SQL function inbox_dead_retry, or
  /// `outboxd consumer dead retry`): each in a transaction of its own, a parked key's queue in its order, as
  /// far as its handlers let it. One that fails waits for the next such word; one whose handler throws Retry,
  /// or meets what is not the message's fault (a deadlock, a missing table), is taken again later, after a
  /// backoff from a second to ten minutes, so that all that are wanted take turns. Any number of processes may call it at once. Consumer does it by itself.
  /// Shape: an outcome for each message that was taken, `letters_max` at most; empty: nothing to do, or the
  /// database can't be reached. Blocks: as process().
  [[nodiscard]] std::vector<Outcome> retry_dead(const Handler& handler, int letters_max = 100);
  [[nodiscard]] std::vector<Outcome> retry_dead(const SpanHandler& handler, int letters_max = 100);

  /// The upkeep of processed_msgs, by the SQL function inbox_maintain(): makes daily partitions ahead and
  /// drops those beyond the horizon. Safe to call from many processes. Consumer does it by itself.
  /// Blocks: for some seconds at most. Errors: SqlError.
  Upkeep maintain();

  /// For offsets that are kept in the database, by compare-and-set: makes the caller the partition's owner,
  /// under a higher epoch than any before. Records that carry the epoch move the partition's offset in the
  /// transaction that settles them, and where another has claimed it since, that is rolled back and they are
  /// `waiting` and `fenced`: a member that froze and woke again changes nothing. Offer a partition's records
  /// in order and one batch at a time. Errors: SqlError. Blocks: while a transaction that moves it commits.
  [[nodiscard]] PartitionClaim claim_partition(std::string_view topic, std::int32_t partition);

  /// Where to start a partition that the transport has no position of: `next`, which is remembered, or what
  /// was remembered before. So a group whose offsets were lost does not start at the end once more, behind
  /// messages that it never saw. Errors: SqlError. Blocks: for a second behind whoever has the partition's row.
  [[nodiscard]] std::int64_t start_partition(std::string_view topic, std::int32_t partition,
                                             std::int64_t next);

  /// Asks the database to cancel what process() waits for; its records are then `waiting`. Any thread.
  void cancel() noexcept;

  /// For a database that does not answer even that: ends the connection under what waits for it. Whether a
  /// COMMIT under way took effect is then not known, and whoever is offered its records again is told by the
  /// database. From now on process() and the like begin nothing: their records are `waiting`. Any thread.
  void abandon() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outbox
