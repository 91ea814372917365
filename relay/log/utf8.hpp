#pragma once
// Text from outside, read one character at a time. A byte that belongs to no valid UTF-8 sequence (overlong
// forms and surrogates are not valid) is handed out alone, marked so.

#include <optional>
#include <string_view>

namespace outbox::log {

class Utf8 {
 public:
  struct Character {
    char32_t point;          ///< the code point; the byte's value where not valid
    std::string_view bytes;  ///< as they stand in the text
    bool valid;
  };

  explicit Utf8(std::string_view text) : rest_(text) {}
  /// nullopt: the end.
  [[nodiscard]] std::optional<Character> next();

 private:
  std::string_view rest_;
};

/// Control characters (C0, DEL, C1), line and paragraph separators, and the bidirectional controls that can
/// make a line read otherwise than it is stored.
[[nodiscard]] bool unprintable(char32_t point);

}  // namespace outbox::log
