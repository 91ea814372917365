#pragma once
// Waiting by condition with a deadline: the only place where a test may let time pass.

#include <functional>
#include <string_view>

#include "base/clock.hpp"

namespace outbox::test {

inline constexpr Millis patience{20'000};  ///< for what takes milliseconds on an idle machine

/// Blocks until `condition` holds, or false once `deadline` has passed. The condition is tried at once, and a
/// last time at the deadline.
[[nodiscard]] bool happens_within(Millis deadline, const std::function<bool()>& condition);

/// The same where it must happen. Throws std::runtime_error "<what> did not happen within …" otherwise.
void eventually(std::string_view what, const std::function<bool()>& condition, Millis deadline = patience);

}  // namespace outbox::test
