#pragma once
// Where a scheduled row takes its place in its key's order, and what must wait because its place is not known
// yet. Pure.
//
// A scheduled row comes due at available_at. It stands before every row of its key whose transaction began
// later (created_at is when a transaction began), and so behind every row that was committed by then. A
// transaction that was open at that moment may stand on either side: it began before and ended after. Where
// both times are the same, the smaller id goes first: so a row that is scheduled for now and a plain one, in
// one transaction, keep their order.

#include <vector>

#include "relay/core/types.hpp"

namespace outbox::relay {

struct PublishingOrder {
  std::vector<Message> rows;     ///< to be published, in this order
  std::vector<Message> waiting;  ///< stay PENDING for a later claim, since something of their key comes first
};

/// Shape: the batch's rows and due rows as one sequence by shard; takes both out of it. Within a shard a due
/// row stands before the first row that comes after it.
///
/// What a limit cut off holds back what may come after it, and no key passes a row of its own:
/// - where a shard's rows were cut and no row that comes after a due row is among them, earlier rows of its
///   key may be behind the limit: the due row is left out, and claimed again later;
/// - where due rows were cut, a row of a key that comes after the cut waits, with all that follows of its key;
/// - a due row that is locked waits, and what follows of its key with it.
///
/// Of a claim whose due rows were cut some need not wait, unless all are of keys that a locked row holds back.
[[nodiscard]] PublishingOrder in_publishing_order(Batch& batch);

}  // namespace outbox::relay
