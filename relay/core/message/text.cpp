#include "relay/core/message/text.hpp"

#include <cstdint>

namespace outbox::relay {
namespace {

std::uint8_t byte(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

bool continues(std::string_view text, std::size_t at) {
  return at < text.size() && (byte(text, at) & 0xC0) == 0x80;
}

// The length of the well-formed character at `at`, or 0. Source: Unicode, table 3-7.
std::size_t character_length(std::string_view text, std::size_t at) {
  const std::uint8_t first = byte(text, at);
  if (first == 0) return 0;
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                             : (first & 0xF0) == 0xE0         ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 0;
  for (std::size_t i = 1; i < length; ++i)
    if (!continues(text, at + i)) return 0;
  if (length < 3) return length;
  const std::uint8_t second = byte(text, at + 1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second > 0x9F;
  const bool beyond = first == 0xF4 && second > 0x8F;
  return overlong || surrogate || beyond ? 0 : length;
}

}  // namespace

std::string bounded_text(std::string_view text, std::size_t bytes_max) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    const std::size_t taken = length == 0 ? 1 : length;
    if (out.size() + taken > bytes_max) break;
    if (length == 0)
      out.push_back('?');
    else
      out.append(text.substr(at, length));
    at += taken;
  }
  return out;
}

}  // namespace outbox::relay
