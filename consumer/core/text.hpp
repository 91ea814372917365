#pragma once
// Bytes from elsewhere on their way into columns and lines that hold text only. Pure; any thread.

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "outbox/message.hpp"

namespace outbox {

/// Well-formed UTF-8 without NUL: what PostgreSQL takes as text.
[[nodiscard]] bool is_text(std::string_view bytes);

/// `bytes` as text: each byte that is no UTF-8, and each NUL, becomes '?'; cut at `bytes_max` between
/// characters.
[[nodiscard]] std::string to_text(std::string_view bytes, std::size_t bytes_max);

/// `text` for a line of a log: what would break or colour the line becomes a blank.
[[nodiscard]] std::string one_line(std::string text);

/// Shape: a JSON array of [name, value] in the record's order. A value that is text is a string, a null one
/// is null, any other is
/// {"base64": "…"}; a name that is no text is written likewise.
[[nodiscard]] std::string headers_json(std::span<const Header> headers);

/// Shape: a JSON object of strings, as the outbox table keeps headers. What is no text is passed on for the
/// database to refuse.
[[nodiscard]] std::string headers_object_json(std::span<const std::pair<std::string, std::string>> headers);

}  // namespace outbox
