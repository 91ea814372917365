#pragma once
// Invariants, checked in release builds too. With at-least-once and deduplication a crash costs a replay; a
// wrong mark costs money.

namespace outbox {

/// Prints the broken invariant to standard error and aborts.
[[noreturn]] void check_failed(const char* expression, const char* law, const char* file, int line) noexcept;

}  // namespace outbox

/// Aborts unless `expression` holds; `law` says in words what must be true.
#define OUTBOX_CHECK(expression, law) \
  ((expression) ? static_cast<void>(0) : ::outbox::check_failed(#expression, law, __FILE__, __LINE__))
