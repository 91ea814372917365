#pragma once
// What a service does with a fresh message, and how it says that it could not.

#include <chrono>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>

#include "outbox/message.hpp"
#include "outbox/transaction.hpp"

namespace outbox {

/// Called once for each fresh message, in the order of its partition. It may be called again for the same
/// message after a rollback, so what it does outside the transaction must bear repetition. Returning: the
/// message is done. Throwing: nothing was written, and then
///   Retry                       tried again in place, with backoff, for as long as the handler says so
///   Reject                      goes to dead_msgs at once, with the reason
///   Stale                       is done, without an effect: something later was applied already
///   SqlError, transient         the whole transaction is repeated (deadlock, lost connection …)
///   SqlError, environment       (no privilege, no such table …) as Retry: no message is to blame, for as long
///                               as InboxOptions::environment_patience says; then as anything else
///   anything else               tried again in place, with backoff, up to attempts_max times, then as
///                               InboxOptions::after_attempts says
/// While a message waits for its next try, those behind it in its partition wait too; other partitions go on.
using Handler = std::function<void(Transaction&, const Message&)>;

/// Called with all fresh messages of a batch, at least one, in the order of each partition, for set-based
/// SQL: one statement for a hundred messages. Returning and throwing mean the same for all of them; where it
/// throws for several, the batch is rolled back and redone by halves, down to the message that it throws for
/// alone.
using SpanHandler = std::function<void(Transaction&, std::span<const Message>)>;

/// Thrown by a handler: not now, and not before `wait` is over (an hour at most); the backoff is the least.
struct Retry : std::runtime_error {
  explicit Retry(const std::string& reason, std::chrono::milliseconds not_before = {})
      : std::runtime_error(reason), wait(not_before) {}
  std::chrono::milliseconds wait;
};

/// Thrown by a handler: something later was applied already; see Transaction::advance().
struct Stale : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thrown by a handler: never; a person must look at this message.
struct Reject : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace outbox
