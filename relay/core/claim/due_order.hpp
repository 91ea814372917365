#pragma once
// Where a scheduled row takes its place. Pure.

#include <vector>

#include "relay/core/types.hpp"

namespace outbox::relay {

/// Shape: the batch's rows and due rows as one sequence by shard; takes both out of it. Within a shard a due
/// row stands before the first row that was created after it came due. Where a limit cut its shard short and
/// no such row is among them, the due row is left out: earlier rows of its key may still be behind the limit,
/// and it is claimed again later.
[[nodiscard]] std::vector<Message> in_publishing_order(Batch& batch);

}  // namespace outbox::relay
