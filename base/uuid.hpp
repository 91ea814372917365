#pragma once
// A UUID's 16 bytes, in network order, as PostgreSQL's binary form and RFC 9562 have them.

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace outbox {

struct Uuid {
  std::array<std::uint8_t, 16> bytes{};
  friend auto operator<=>(const Uuid&, const Uuid&) = default;
};

/// Lower-case "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".
[[nodiscard]] std::string to_string(const Uuid& id);
/// The 36-character form in either case; nothing else (no braces, no blanks) is an id.
[[nodiscard]] std::optional<Uuid> parse_uuid(std::string_view text);

}  // namespace outbox

template <>
struct std::hash<outbox::Uuid> {
  std::size_t operator()(const outbox::Uuid& id) const noexcept {
    return std::hash<std::string_view>{}({reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()});
  }
};
