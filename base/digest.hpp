#pragma once
// SHA-256 (payload hashes) and SHA-1 (uuid version 5 only), so that the installed library needs no
// cryptography package. Pure; any thread. Source: FIPS 180-4.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace outbox {

using Sha256 = std::array<std::uint8_t, 32>;
using Sha1 = std::array<std::uint8_t, 20>;

[[nodiscard]] Sha256 sha256(std::string_view bytes);
[[nodiscard]] Sha1 sha1(std::string_view bytes);

/// What tells a duplicate from a conflict: SHA-256 of the body's bytes; 32 zero bytes for a tombstone, so
/// that null and empty differ.
[[nodiscard]] Sha256 payload_sha256(std::optional<std::string_view> body);

/// Lower-case hexadecimal.
[[nodiscard]] std::string hex(const Sha256& digest);

}  // namespace outbox
