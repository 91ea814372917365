#pragma once
// Reads the results of a claim's statements into a Batch. Pure: rows in, messages out; the messages' views
// point into the result's memory, which the Batch keeps. Source: the columns of source_claim_by_shard.sql,
// source_claim_flat.sql and source_claim_due.sql.

#include "pg/rows.hpp"
#include "relay/ports/source.hpp"
#include "relay/postgres/claim_budget.hpp"

namespace outbox::relay {

struct ClaimResults {
  pg::Rows rows;
  pg::Rows due;
  pg::Rows end;  ///< of source_claim_end.sql
};

struct Claimed {
  Batch batch;
  ClaimSeen seen;
};

[[nodiscard]] Claimed read_claim(const ClaimResults& results, const ClaimRequest& request,
                                 const ClaimShares& shares);

}  // namespace outbox::relay
