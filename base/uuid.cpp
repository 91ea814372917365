#include "base/uuid.hpp"

namespace outbox {
namespace {

constexpr std::string_view digits = "0123456789abcdef";

constexpr bool dash_before(std::size_t byte) {
  return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

std::optional<unsigned> digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

}  // namespace

std::string to_string(const Uuid& id) {
  std::string out;
  out.reserve(36);
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    if (dash_before(i)) out.push_back('-');
    out.push_back(digits[id.bytes[i] >> 4]);
    out.push_back(digits[id.bytes[i] & 15]);
  }
  return out;
}

std::optional<Uuid> parse_uuid(std::string_view text) {
  if (text.size() != 36) return std::nullopt;
  Uuid id;
  std::size_t at = 0;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    if (dash_before(i) && text[at++] != '-') return std::nullopt;
    const auto high = digit(text[at++]);
    const auto low = digit(text[at++]);
    if (!high || !low) return std::nullopt;
    id.bytes[i] = static_cast<std::uint8_t>(*high << 4 | *low);
  }
  return id;
}

}  // namespace outbox
