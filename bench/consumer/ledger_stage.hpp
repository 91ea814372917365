#pragma once
// A service's database for the consumer's benchmark, and the messages that it gets: a PostgreSQL of its own,
// set as for production and gone with this object. Blocks; throws std::runtime_error.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "outbox/inbox.hpp"
#include "pg/session.hpp"
#include "tests/support/postgres.hpp"

namespace bench {

/// Messages as Kafka would give them: ids of version 7 of this moment, a thousand accounts, 300-byte bodies.
/// What records() views lives as long as this object and stays where it is.
class Messages {
 public:
  /// `first`: of their numbers, which no other Messages of the run may share.
  Messages(std::int64_t first, int count);
  [[nodiscard]] const std::vector<outbox::Record>& records() const { return records_; }

 private:
  std::vector<std::string> ids_, keys_, bodies_;
  std::vector<outbox::Header> headers_;
  std::vector<outbox::Record> records_;
};

class LedgerStage {
 public:
  LedgerStage();
  [[nodiscard]] outbox::InboxOptions inbox() const { return {.name = "bench", .postgres = database_.uri()}; }
  [[nodiscard]] outbox::pg::Session& session() { return session_; }
  /// Empties what the handlers wrote; what was processed stays.
  void empty_ledger();
  /// `rows` of processed_msgs as old batches left them, spread over the days that have partitions.
  void fill_processed(std::int64_t rows);
  [[nodiscard]] std::string postgres_version();

 private:
  outbox::test::PostgresServer server_;
  outbox::test::TestDatabase database_;
  outbox::pg::Session session_;
  std::int64_t filled_ = 0;
};

/// The handler of every measurement: two statements a message, as a ledger has them.
inline constexpr const char* update_balance =
    "INSERT INTO account (id, cents) VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET cents = account.cents + 1 "
    "RETURNING cents";
/// $2: the balance after it, or null.
inline constexpr const char* insert_entry =
    "INSERT INTO entry (account, cents, balance) SELECT m->>'account', (m->>'cents')::bigint, $2 "
    "FROM (SELECT $1::jsonb) AS b (m)";

}  // namespace bench
