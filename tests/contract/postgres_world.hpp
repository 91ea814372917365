#pragma once
// A World of tests/contract/source_contract.hpp on a real outbox table, migrated into a database of its own,
// with the relay's own role on the source's connections. Blocks; one thread.

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "relay/postgres/postgres_source.hpp"
#include "tests/contract/source_contract.hpp"
#include "tests/support/postgres.hpp"

namespace outbox::test {

struct PostgresWorldOptions {
  std::string table = "public.outbox_msg";  ///< as people write it
  std::string body_type = "json";
  std::string server = shared_postgres();
  relay::Barrier barrier = relay::Barrier::on;
  int connections = 2;
  relay::UpkeepOptions upkeep{};
  bool migrated = true;  ///< false: there is no table
  std::string partition_column{};
  bool started = true;  ///< false: start_source() comes later
};

class PostgresWorld {
 public:
  explicit PostgresWorld(PostgresWorldOptions options = {});
  ~PostgresWorld();
  PostgresWorld(const PostgresWorld&) = delete;
  PostgresWorld& operator=(const PostgresWorld&) = delete;

  std::int64_t insert(const NewRow& row);
  std::int64_t next_id();
  [[nodiscard]] std::optional<RowState> row(std::int64_t id);
  [[nodiscard]] std::vector<RowState> rows(std::int64_t id);
  void replace(std::int64_t id);
  void cancel(std::int64_t id);
  void remove(std::int64_t id);
  void lock(std::int64_t id);
  void unlock();
  void replay(std::int64_t id);
  [[nodiscard]] bool hold_exists(const relay::HoldTarget& target);
  void name_partitions();
  void pause(const relay::HoldTarget& target);
  void resume(const relay::HoldTarget& target);
  void retry(std::int64_t id);
  void pause(std::optional<std::string> reason);
  [[nodiscard]] relay::PostgresSource& source() { return *source_; }
  void pump(const std::function<bool()>& until);
  void pass(Millis time);

  // Of the real thing only.
  void migrate();
  /// Waits until the source is up, unless the table is not there.
  void start_source(const std::string& user = "outbox_relay");
  [[nodiscard]] pg::Session& session() { return *session_; }
  /// SQL of a test, with {{table}} and {{schema}} filled in as far as they occur; its first value as text.
  std::string sql(std::string_view text, const pg::Params& params = {});
  [[nodiscard]] const pg::TableName& table() const { return table_; }
  [[nodiscard]] const TestDatabase& database() const { return database_; }

  int hints = 0;
  int lane_hints = 0;
  std::vector<std::pair<relay::LinkState, std::string>> links;

 private:
  PostgresWorldOptions options_;
  pg::TableName table_;
  TestDatabase database_;
  std::unique_ptr<pg::Session> session_;
  std::unique_ptr<pg::Session> other_;
  boost::asio::io_context loop_;
  std::unique_ptr<relay::PostgresSource> source_;
};

}  // namespace outbox::test
