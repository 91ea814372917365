#pragma once
// The port Source on PostgreSQL: the outbox table, its holds, leases and pins. Nothing is kept open between
// calls; every call is one segment (one transaction) on one of a few pipelined connections.
//
// One connection claims, the others mark, so that a claim never waits behind the fsync of a mark; one more
// carries what must never queue behind long work: the lease, the asleep flag, LISTEN. Each reconnects by
// itself forever; on_link tells when all are up and the table is as it must be, and when that ends.
// Lifecycle: constructed → start() → stop(). Thread: the loop's.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "pg/identifier.hpp"
#include "pg/session.hpp"
#include "relay/ports/source.hpp"
#include "relay/postgres/upkeep_options.hpp"

namespace boost::asio {
class io_context;
}

namespace outbox::relay {

enum class Barrier {
  on,
  off,  ///< for one test only: shows that rows are then handed out before they are on disk
};
enum class Statements { prepared, unnamed };  ///< unnamed: behind a pooler in transaction mode

struct PostgresSourceOptions {
  pg::ConnectOptions connect;
  pg::TableName table{"public", "outbox_msg"};
  std::string partition_column{};  ///< in which a row names its partition, unquoted; empty: none
  int connections = 2;             ///< 2..4: one claims, the others mark; the control connection comes on top
  Statements statements = Statements::prepared;
  Barrier barrier = Barrier::on;
  Millis deadline{30'000};  ///< of one call
  UpkeepOptions upkeep{};
  Millis inspect_again{2'000};  ///< after the table was found missing or unfit
  std::uint64_t seed = 1;       ///< of the reconnects' jitter
};

class PostgresSource final : public Source {
 public:
  PostgresSource(boost::asio::io_context& loop, PostgresSourceOptions options);
  ~PostgresSource() override;

  void start(Events events) override;
  void stop() override;
  /// Other credentials for the same server: used from the next connect on, while what is connected works on.
  void set_uri(const std::string& uri);

  /// Shape: under Look::by_shard every shard has an equal share of rows and bytes; where rows are too large
  /// for that, only some of the shards are probed, in rotation, and `more` is set. rows_max bounds rows and
  /// due rows each.
  void claim(ClaimRequest request, Done<Batch> done) override;
  void mark(std::vector<SentRow> rows, AfterSent after, Done<MarkReply> done) override;
  void bury(DeadRow row, DoneStatus done) override;
  void hold(HoldTarget target, std::string reason, DoneStatus done) override;
  void set_held(std::vector<RowName> rows, DoneStatus done) override;
  void release(HoldTarget target, Done<Release> done) override;
  void held_topics(Done<std::vector<std::string>> done) override;
  void lease(LeaseRequest request, Done<LeaseReply> done) override;
  void give_back(std::string owner, std::vector<Lease> lanes, Leaving leaving, DoneStatus done) override;
  void pin(std::string topic, std::int32_t current, Done<std::int32_t> done) override;
  void repin(std::string topic, std::int32_t partitions, DoneStatus done) override;
  void join_ledger(Done<LedgerStanding> done) override;
  void settle_ledger(std::vector<LaneGeneration> settled, Lease lease, DoneStatus done) override;
  void declare_asleep(Millis for_how_long, DoneStatus done) override;

  [[nodiscard]] UpkeepFigures upkeep() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace outbox::relay
