#pragma once
// Why a handler's transaction did not come about, and whom that is held against. Pure; any thread.

#include <exception>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace outbox {

struct Failure {
  enum class Kind {
    transient,  ///< deadlock, serialisation, lost connection …: repeat the transaction, nobody is to blame
    environment,  ///< no privilege, no such table …: repeat it later; no message is to blame, a person must
                  ///< act
    fenced,       ///< another member has claimed a partition of the batch: it is no affair of ours any more
    alone,        ///< nothing failed: the message needs a transaction without others
    later,        ///< the handler threw Retry
    rejected,     ///< the handler threw Reject
    stale,        ///< the handler threw Stale
    message,      ///< anything else: this message's
  };
  Kind kind = Kind::transient;
  std::string reason;
  Millis wait{0};  ///< of Retry
};

/// retry, reconnect or in_doubt: the transaction may be repeated as a whole, since its dedup row says what
/// happened.
[[nodiscard]] bool is_transient(const Error& error);

/// A failed statement. What PostgreSQL could do better next time is transient; refusals that any message
/// would meet (classes 0A, 28, 3D, 3F, 42) are the environment's; the rest (constraints, data, an
/// exception raised in SQL) the message's.
[[nodiscard]] Failure failure_of(const Error& error);

/// What a handler threw, given the first SQL error of its transaction where that broke it. A transient one
/// outweighs whatever the handler made of it: a deadlock is no reason to reject a payment.
[[nodiscard]] Failure failure_of(const std::exception_ptr& thrown, const std::optional<Error>& breaking);

}  // namespace outbox
