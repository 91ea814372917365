#pragma once
// Where a scheduled row takes its place. Pure.

#include <vector>

#include "relay/core/types.hpp"

namespace outbox::relay {

/// Shape: `rows` by (shard, id) and `due` by (available_at, id) become one sequence by shard; within a shard a due row
/// stands before the first row that was created after it came due. Where a limit cut the rows short (`more`) and no such
/// row is among them, the due row is left out: earlier rows of its key may still be behind the limit, and it is claimed
/// again later.
[[nodiscard]] std::vector<Message> in_publishing_order(std::vector<Message> rows, std::vector<Message> due, bool more);

}  // namespace outbox::relay
