#pragma once
// What `outboxd check` reads of PostgreSQL. Reading is apart from judging, so that every judgement can be
// tested without a server that has the fault.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "pg/identifier.hpp"
#include "pg/session.hpp"

namespace outbox::relay {

struct ServerFacts {
  std::int64_t version = 0;  ///< 150018 and the like
  bool standby = false;
  bool read_only = false;
  bool fsync = true;
  bool full_page_writes = true;
  std::string synchronous_commit = "on";
  Millis statement_timeout{0};  ///< 0: none
  Micros clock_ahead{0};        ///< of this machine's, by the middle of the round trip
  bool pooled = false;          ///< the server's process is not the one that the connection was made to
  bool sees_others = true;      ///< other roles' transactions
  bool superuser = false;
  std::optional<Millis> oldest_transaction{};
  std::int64_t prepared_transactions = 0;  ///< forgotten for 5 minutes
  std::string idle_slots{};
  std::string wal_level = "replica";
  std::string standbys_wanted{};  ///< synchronous_standby_names
  std::int64_t standbys_in_sync = 0;
  double notify_queue = 0;  ///< how full the server's queue of notifications is: 0 to 1
};

struct TableFacts {
  std::map<std::string, std::int64_t> migrations{};  ///< of each set the highest number that was applied
  std::int64_t sequence_cache = 1;                   ///< 0: no sequence
  std::string indexes_missing{};  ///< "part (shard,id), …"; an invalid one counts as missing
  bool wakes = true;              ///< the trigger that notifies is there and on
  std::string unvacuumed{};       ///< partitions with autovacuum off
  std::int64_t lanes_leased = 0;  ///< as the present owners deal them; 0: nobody
  std::int64_t dead = 0;
  std::int64_t holds = 0;
  std::optional<Millis> partitions_ahead{};
  std::int64_t default_partition_bytes = 0;
};

struct WaitingTopic {
  std::string topic{};
  std::int64_t rows = 0;
  std::int64_t largest_body = 0;
  std::int32_t pinned = 0;  ///< 0: not yet
  std::string kafka{};      ///< what Kafka calls it; filled in by who knows the topics' rules
};

/// The consumer in this database that forgets first.
struct ShortestMemory {
  std::string consumer{};
  Millis horizon{};
};

/// Blocks for a round trip each. Errors: the session's. Source: sql/queries/check_*.sql, survey_storage.sql
[[nodiscard]] Result<ServerFacts> read_server_facts(pg::Session& session);
[[nodiscard]] Result<TableFacts> read_table_facts(pg::Session& session, const pg::TableName& table);
/// nullopt: none forgets, or there is no consumer.
[[nodiscard]] Result<std::optional<ShortestMemory>> read_shortest_memory(pg::Session& session,
                                                                         const pg::TableName& table);
[[nodiscard]] Result<std::vector<WaitingTopic>> read_waiting_topics(pg::Session& session,
                                                                    const pg::TableName& table);

}  // namespace outbox::relay
