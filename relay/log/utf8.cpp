#include "relay/log/utf8.hpp"

#include <cstddef>

namespace outbox::log {
namespace {

constexpr unsigned char byte(char c) {
  return static_cast<unsigned char>(c);
}

struct Lead {
  std::size_t length;
  char32_t bits;
  char32_t smallest;  // below it the form is overlong
};

std::optional<Lead> lead_of(unsigned char c) {
  if (c < 0x80) return Lead{1, c, 0};
  if ((c & 0xE0U) == 0xC0U) return Lead{2, c & 0x1FU, 0x80};
  if ((c & 0xF0U) == 0xE0U) return Lead{3, c & 0x0FU, 0x800};
  if ((c & 0xF8U) == 0xF0U) return Lead{4, c & 0x07U, 0x10000};
  return std::nullopt;
}

}  // namespace

std::optional<Utf8::Character> Utf8::next() {
  if (rest_.empty()) return std::nullopt;
  const std::string_view text = rest_;
  const auto alone = [&]() -> Character {
    rest_.remove_prefix(1);
    return {byte(text[0]), text.substr(0, 1), false};
  };
  const auto lead = lead_of(byte(text[0]));
  if (!lead || text.size() < lead->length) return alone();
  char32_t point = lead->bits;
  for (std::size_t i = 1; i < lead->length; ++i) {
    if ((byte(text[i]) & 0xC0U) != 0x80U) return alone();
    point = (point << 6U) | (byte(text[i]) & 0x3FU);
  }
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (point < lead->smallest || surrogate || point > 0x10FFFF) return alone();
  rest_.remove_prefix(lead->length);
  return Character{point, text.substr(0, lead->length), true};
}

bool unprintable(char32_t point) {
  return point < 0x20 || (point >= 0x7F && point <= 0x9F) || point == 0x2028 || point == 0x2029 ||
         (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) || point == 0x200E ||
         point == 0x200F || point == 0xFEFF;
}

}  // namespace outbox::log
