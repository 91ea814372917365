#pragma once
// Text from outside, made fit to be stored. Pure.

#include <cstddef>
#include <string>
#include <string_view>

namespace outbox::relay {

inline constexpr std::size_t last_error_bytes_max = 1000;

/// Shape: `text` as valid UTF-8 without NUL, at most `bytes_max` long, cut between characters; a byte that is
/// not UTF-8, and NUL, become '?'.
[[nodiscard]] std::string bounded_text(std::string_view text, std::size_t bytes_max);

}  // namespace outbox::relay
