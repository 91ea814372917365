#pragma once
// Locks that a migration needs of tables in use: asked for briefly, again and again, since every statement that
// comes later waits behind one that is waited for.

#include <functional>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace outbox::relay {

/// Runs `work`, which leaves nothing behind where it fails, until no lock is in its way or `patience` is over.
/// Errors: those of `work`; that a lock was not had, with advice. Blocks: for `patience`, and pauses between the
/// tries.
[[nodiscard]] Status with_patience(Millis patience, const std::function<Status()>& work);

}  // namespace outbox::relay
