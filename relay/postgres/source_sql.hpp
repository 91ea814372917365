#pragma once
// The source's statements, filled in for one outbox table. A statement's text lives as long as this object,
// and its address names the prepared statement, so there is one object per source and it is replaced only
// with its connections.

#include <memory>
#include <string>

#include "pg/identifier.hpp"
#include "relay/postgres/source_facts.hpp"

namespace outbox::relay {

using Sql = std::shared_ptr<const std::string>;

struct SourceSql {
  /// `partition_column`: in which a row names its partition, unquoted; empty: none.
  SourceSql(const pg::TableName& table, BodyColumn body, const std::string& partition_column = {});

  Sql settings;
  Sql claim_begin, claim_by_shard, claim_flat, claim_flat_above, claim_due, claim_end;
  Sql mark_settings, mark_look, mark_leases, mark_cancelled, partition_names;
  Sql bury, hold, hold_lock, set_held, release, held_topics;
  Sql lease, give_back, pin, pinned, repin, asleep;
  Sql ledger_join, ledger, ledger_settle;
};

/// The statements that address one partition directly; `quoted` is its quoted name.
struct PartitionSql {
  PartitionSql(const pg::TableName& table, const std::string& quoted);

  Sql mark, erase;
};

/// The inspection needs no table's name, so it stands alone.
[[nodiscard]] Sql inspect_sql();

}  // namespace outbox::relay
