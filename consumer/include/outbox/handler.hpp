#pragma once
// What a service does with a fresh message, and how it says that it could not.

#include <functional>
#include <stdexcept>

#include "outbox/message.hpp"
#include "outbox/transaction.hpp"

namespace outbox {

/// Called once for each fresh message, in the order of its partition. It may be called again for the same
/// message after a rollback, so what it does outside the transaction must bear repetition. Returning: the
/// message is done. Throwing: nothing was written, and then
///   Retry                       the message is tried again in place, with backoff, for as long as the
///   handler says so Reject                      it goes to dead_msgs at once, with the reason SqlError,
///   transient         the whole transaction is repeated (deadlock, serialisation, lost connection …)
///   SqlError, environment       (no privilege, no such table …) as Retry: no message is to blame
///   anything else               tried again in place, with backoff, up to attempts_max times, then dead_msgs
/// While a message waits for its next try, those behind it in its partition wait too; other partitions go on.
using Handler = std::function<void(Transaction&, const Message&)>;

/// Thrown by a handler: not now.
struct Retry : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thrown by a handler: never; a person must look at this message.
struct Reject : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace outbox
