#pragma once
// How an event is written, as pure text: `lease_taken lane=3 epoch=7` or the members of a JSON object.
// Whatever comes from outside (a broker's error text, a topic's name) can neither start a new line nor move a
// terminal's cursor.

#include <span>
#include <string>
#include <string_view>

#include "relay/log/value.hpp"

namespace outbox::log {

/// A value longer than this is cut, and ends in "…".
inline constexpr std::size_t value_bytes_max = 2000;

/// Shape: `event name=value name="two words"`. Text is quoted where it is empty or holds a space, a quote,
/// '=' or anything escaped; control characters (C0, DEL, C1), line separators and bidirectional overrides
/// become \n, \t, \u{9b}; a byte that is not UTF-8 becomes \xNN. Durations: `wait=250ms`.
[[nodiscard]] std::string text_line(std::string_view event, std::span<const Field> fields);

/// Shape: `"event":"lease_taken","lane":3`, without the braces: the writer puts time and level before it.
/// Bytes that are not UTF-8 become U+FFFD. Durations are numbers of milliseconds, the name gets `_ms`:
/// `"wait_ms":250`. Source: RFC 8259.
[[nodiscard]] std::string json_members(std::string_view event, std::span<const Field> fields);

/// One text as text_line writes it: quoted and escaped where it needs to be.
[[nodiscard]] std::string text_value(std::string_view text);

}  // namespace outbox::log
