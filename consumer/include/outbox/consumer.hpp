#pragma once
// A service's Kafka loop: fetches, deduplicates, runs the handler, commits in the database, and only then
// lets the offset move. Whatever dies and whenever, a message that was sent takes effect once.
//
//   outbox::Consumer consumer({.name = "ledger", .postgres = "postgresql:///bank",
//                              .kafka = {{"bootstrap.servers", "127.0.0.1:9092"}}, .topics = {"transfers"}});
//   consumer.run([](outbox::Transaction& tx, const outbox::Message& m) { tx.exec("…", m.body()); });
//
// Thread: run() polls Kafka on the caller's thread; the handler runs on threads of the library: one call at a
// time, or with `workers` so many at once, never two for one partition. stop() and counters() may be called
// from any thread.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "outbox/inbox.hpp"
#include "outbox/metrics.hpp"

namespace outbox {

enum class StartAt {
  beginning,  ///< of what Kafka still has
  end,        ///< only what is sent from now on
};

/// What order is kept.
enum class Order {
  partition,  ///< that of a partition: one worker has it
  key,        ///< that of a key within a partition: its keys are spread over all workers, by their hash, so
              ///< that one partition keeps several at work. Messages without a key are in no order. An offset
              ///< moves when all before it are done, whoever did them
};

/// Where the offset of a partition is kept that decides where to go on.
enum class Offsets {
  kafka,     ///< with the group's coordinator, committed after the database's commit
  database,  ///< in inbox_offset, moved in the transaction of the effects, by compare-and-set: a member that
             ///< froze and wakes again is refused, and after a restored backup Kafka is read from where the
             ///< database stands. Kafka is told as well, for tools that show lag. Needs Order::partition
};

/// What the horizon is compared with when the loop starts: each topic's retention.ms + segment.ms (Kafka
/// deletes whole segments), plus publish_delay_max.
enum class HorizonCheck {
  refuse,     ///< run() ends with the figures where the horizon is not longer, and where a topic keeps
              ///< messages without a limit of time (infinite, compacted, by size only). It ends, too, where
              ///< the cluster may not or does not tell (within 15 s of being in reach). A topic that is not
              ///< there yet is looked for every 5 s, and judged when it is. `forever` passes always.
  unchecked,  ///< horizon: unchecked. Somebody knows better, and answers for it
};

struct ConsumerOptions {
  std::string name{};             ///< see InboxOptions; also the group.id, where `kafka` has none
  std::string postgres{};         ///< see InboxOptions
  std::string schema = "public";  ///< see InboxOptions
  /// librdkafka's properties. Set by the library unless given: session.timeout.ms=6000,
  /// partition.assignment.strategy= cooperative-sticky, queued.max.messages.kbytes=16384, client.id. Refused,
  /// since the promise rests on them: enable.auto.commit, enable.auto.offset.store, auto.offset.reset,
  /// isolation.level other than the library's, plugins.
  std::map<std::string, std::string> kafka{};
  std::vector<std::string> topics{};
  /// Where a new group starts. A partition that is added to a topic of a known group is always read from its
  /// beginning.
  StartAt start_at = StartAt::beginning;

  /// Threads that run the handler, each with a connection of its own; 1..64. By Order::partition each has
  /// partitions of its own, and more than there are partitions are idle.
  int workers = 1;
  Order order = Order::partition;
  Offsets offsets = Offsets::kafka;
  int batch_rows_max = 500;                  ///< records in one transaction; 1..10,000
  std::int64_t batch_bytes_max = 4 << 20;    ///< in one transaction; one record may exceed it
  std::int64_t buffer_bytes_max = 16 << 20;  ///< fetched and not yet done, beyond librdkafka's own queue;
                                             ///< twice that while partitions wait for their next try
  int attempts_max = 10;                     ///< see InboxOptions
  AfterAttempts after_attempts = AfterAttempts::park_key;  ///< see InboxOptions
  Guard guard = Guard::none;                               ///< see InboxOptions
  IdOf id_of{};                                            ///< see InboxOptions
  std::chrono::hours horizon{24 * 30};                     ///< see InboxOptions
  HorizonCheck horizon_check = HorizonCheck::refuse;
  /// The longest that a message may lie in its outbox before Kafka has it, or has it again: a schedule, an
  /// outage, a hold, a replay.
  std::chrono::hours publish_delay_max{24 * 7};
  /// Between two rounds of Inbox::maintain(), the first at the start; 0: never, since somebody else does it.
  std::chrono::seconds maintain_interval{3600};
  std::function<void(const Record&, const Outcome&)> on_outcome{};  ///< see InboxOptions
  std::chrono::milliseconds dead_retry_interval{
      1000};                           ///< between two calls of Inbox::retry_dead(); 0: never
  std::shared_ptr<Metrics> metrics{};  ///< see metrics.hpp; none: nothing is measured
  std::chrono::milliseconds backoff_initial{
      100};  ///< before a failed message or a lost database is tried again …
  std::chrono::milliseconds backoff_max{10'000};  ///< … doubled up to this
  std::chrono::milliseconds commit_interval{
      100};  ///< between commits of offsets to Kafka; replays, never loss, depend on it
  std::chrono::milliseconds drain_timeout{
      10'000};  ///< how long a rebalance or stop() waits for the batch at work

  /// One line per change of state, never a payload. Default: standard error. Called from any of the library's
  /// threads.
  std::function<void(std::string_view)> log{};
};

/// Since the Consumer was made. A message counts once for each time it was settled.
struct Counters {
  std::uint64_t fresh = 0;      ///< applied
  std::uint64_t duplicate = 0;  ///< refused: its effect was there already
  std::uint64_t conflict = 0;   ///< same id, other payload: in dead_msgs
  std::uint64_t expired = 0;    ///< older than what is remembered: in dead_msgs
  std::uint64_t stale = 0;      ///< overtaken by a later message
  std::uint64_t malformed = 0;  ///< without an identity: in dead_msgs
  std::uint64_t dead = 0;       ///< in dead_msgs, for whatever reason, those above among them
  std::uint64_t parked = 0;     ///< in dead_msgs, behind an earlier message of their key
  std::uint64_t revived = 0;    ///< dead messages that were applied after all
  std::uint64_t blocked = 0;    ///< reached attempts_max and block their partition
  std::uint64_t retried = 0;    ///< failed or waiting: offered again
  std::uint64_t batches = 0;    ///< worked on
};

/// The loop can't go on: wrong configuration, offsets that Kafka no longer has, no access. The text says what
/// to do.
class ConsumerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Consumer {
 public:
  /// Errors: ConsumerError names the option that is wrong. Connects to nothing yet.
  explicit Consumer(ConsumerOptions options);
  ~Consumer();
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  /// Returns after stop(), when the batch at work is finished and its offsets are committed. A database or
  /// Kafka that goes away is waited for; but stop() waits for the batch only for drain_timeout, two seconds
  /// more until it is cancelled and its connection given up, and ten for a silent Kafka; what was not
  /// committed comes again. A handler that does not return from code of its own is waited for, after its
  /// partitions were given to others. Errors: ConsumerError. May be called again.
  void run(const Handler& handler);
  void run(const SpanHandler& handler);

  /// Makes run() return; at once, if called before it. Any thread, and safe in a signal handler.
  void stop() noexcept;

  [[nodiscard]] Counters counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outbox
