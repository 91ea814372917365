#pragma once
// How a claim's byte budget is spent: pure arithmetic, and a memory of where rows are large.
//
// Rows and due rows share the budget, and under backlog every shard has an equal share of the rows' part, so
// a shard of large rows cannot starve its neighbours. Where rows are too large for a share, fewer shards are
// probed at a time, in rotation, with larger shares. A row larger than the whole budget goes alone. One
// object per source, on the loop's thread.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "relay/ports/source.hpp"

namespace outbox::relay {

/// What one claim may bring. Bytes are of bodies.
struct ClaimShares {
  std::vector<std::int16_t> shards;  ///< by_shard: the ones to probe now, ascending
  bool all_shards = true;            ///< they are all that were asked for
  std::int32_t rows = 0;             ///< by_shard: of each shard; flat: of all
  std::int64_t bytes = 0;            ///< likewise
  std::int16_t large_shard = -1;  ///< by_shard: whose first row may be larger than `bytes`, up to large_bytes
  std::int64_t large_bytes = 0;   ///< flat: how large the first row may be
  std::int32_t due_rows = 0;
  std::int64_t due_bytes = 0;
  std::int64_t due_large_bytes = 0;  ///< how large the first due row may be
};

/// A row seen by a claim, brought or not.
struct SeenRow {
  Shard shard;
  std::int64_t bytes = 0;
};

struct ClaimSeen {
  std::vector<SeenRow> rows;     ///< the largest of each shard is enough
  std::optional<SeenRow> due{};  ///< the largest
};

class ClaimBudget {
 public:
  [[nodiscard]] ClaimShares shares(const ClaimRequest& request);
  void learn(const ClaimRequest& request, const ClaimShares& shares, const ClaimSeen& seen);

 private:
  void spread(const ClaimRequest& request, std::int64_t bytes, ClaimShares& out);

  std::map<std::int16_t, std::int64_t> large_;  // shards whose rows outgrow an equal share, with the largest
  std::array<std::int16_t, shard_count>
      turn_{};  // per lane (its first shard): the shard that is next in rotation
  std::int64_t flat_large_ = 0;
  std::int64_t due_large_ = 0;
  bool due_expected_ = false;
};

}  // namespace outbox::relay
