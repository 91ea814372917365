#pragma once
// A value between its text in YAML and its place in a struct: text, or a whole number whose unit the kind
// tells. Pure: used for what people write, for defaults and bounds of the table, and for printing.

#include <tl/expected.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace outbox::config {

enum class Kind {
  text,
  count,     ///< 5000
  duration,  ///< 250ms, 5s, 2m, 1h, or a word that means without an end; held in milliseconds
  size,      ///< 512, 500kB, 1MB, 64MiB, 1GiB; held in bytes
  choice,    ///< one of a few words; held as its place among them
};

using Value = std::variant<std::string, std::int64_t>;

/// The duration that its word means.
inline constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max();

/// Shape: `choices` is "poll|notify" where kind is choice; of a duration the word for endless, or empty.
/// Errors: what was expected, as the rest of a sentence: "is not a duration: write a whole number and a unit,
/// such as 250ms, 5s or 2m".
[[nodiscard]] tl::expected<Value, std::string> parse_value(Kind kind, std::string_view text,
                                                           std::string_view choices = {});

/// The shortest text that parse_value reads as the same value: 60000 ms are "1m", 8388608 bytes are "8MiB".
[[nodiscard]] std::string format_value(Kind kind, const Value& value, std::string_view choices = {});

[[nodiscard]] std::vector<std::string_view> split_choices(std::string_view choices);

}  // namespace outbox::config
