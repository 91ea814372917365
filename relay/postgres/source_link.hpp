#pragma once
// The source's connections and what is known about its table: the ground that claims, marks and the small
// calls stand on. Lifecycle: constructed → start() → stop(). Held by shared_ptr: what is under way keeps it
// alive, and stop() silences it. Thread: the loop's.

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "pg/connection.hpp"
#include "relay/postgres/postgres_source.hpp"
#include "relay/postgres/source_sql.hpp"

namespace outbox::relay {

enum class Work {
  claim,
  mark,     ///< and whatever else writes rows
  control,  ///< short calls that must never wait: the lease, the asleep flag
};

class SourceLink : public std::enable_shared_from_this<SourceLink> {
 public:
  /// The results of the statements, without that of the settings.
  using Answer = std::function<void(Result<std::vector<pg::Rows>>)>;

  SourceLink(boost::asio::io_context& loop, PostgresSourceOptions options);

  void start(Source::Events events);
  void stop();
  void set_uri(const std::string& uri);  ///< as pg::Connection has it, for each connection
  [[nodiscard]] bool stopped() const { return stopped_; }

  /// Runs the statements as one transaction behind source_settings.sql. Errors: the connection's.
  void run(Work work, std::vector<pg::Statement> statements, Answer answer,
           std::optional<Millis> deadline = {});
  [[nodiscard]] boost::asio::steady_timer make_timer() { return boost::asio::steady_timer(loop_); }
  /// A later turn of the loop; nothing after stop().
  void post(std::function<void()> turn);

  /// nullptr: the table has not been found fit yet, nothing can run. `why_not` says it.
  [[nodiscard]] const SourceSql* sql() const { return sql_.get(); }
  /// Of the table as it was last looked at.
  [[nodiscard]] bool transaction_first() const { return facts_ && facts_->transaction_first; }
  [[nodiscard]] Error why_not() const;
  /// A pooler stands between: nobody hears a NOTIFY.
  [[nodiscard]] bool deaf() const;
  [[nodiscard]] const PostgresSourceOptions& options() const { return options_; }
  [[nodiscard]] const std::string& source() const { return source_; }  ///< schema.table, unquoted

  /// Statements per partition, by oid; filled by whoever looked the names up.
  [[nodiscard]] const PartitionSql* partition(std::uint32_t oid) const;
  void add_partition(std::uint32_t oid, const std::string& quoted);
  void forget_partitions() { partitions_.clear(); }

 private:
  void add_connection(std::uint64_t number, bool listens);
  [[nodiscard]] pg::Connection& choose(Work work);
  void connection_up();
  void connection_down(const Error& error);
  void inspect();
  void inspected(const Result<std::vector<pg::Rows>>& rows);
  void became_fit(const SourceFacts& facts);
  void inspect_later();
  void report(LinkState state, const std::string& why);

  boost::asio::io_context& loop_;
  const PostgresSourceOptions options_;
  const std::string source_;
  const Sql inspect_sql_ = inspect_sql();
  Source::Events events_;
  std::vector<std::unique_ptr<pg::Connection>> connections_;  // control, claim, mark …
  boost::asio::steady_timer again_;
  std::shared_ptr<const SourceSql> sql_;
  std::optional<SourceFacts> facts_;
  std::unordered_map<std::uint32_t, PartitionSql> partitions_;
  std::optional<LinkState> reported_;
  Error last_error_;
  bool inspecting_ = false;
  bool pooler_told_ = false;
  bool stopped_ = false;
};

}  // namespace outbox::relay
