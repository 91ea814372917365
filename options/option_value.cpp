#include "options/option_value.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <span>

#include "options/suggest.hpp"

namespace outbox::config {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

// The largest first: format_value takes the first that divides.
constexpr std::array duration_units{Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000},
                                    Unit{"s", 1000}, Unit{"ms", 1}};
constexpr std::array size_units{Unit{"GiB", 1LL << 30},
                                Unit{"MiB", 1LL << 20},
                                Unit{"KiB", 1LL << 10},
                                Unit{"GB", 1'000'000'000},
                                Unit{"MB", 1'000'000},
                                Unit{"kB", 1000},
                                Unit{"B", 1}};

constexpr std::string_view no_duration =
    "is not a duration: write a whole number and a unit (ms, s, m, h, d), such as 250ms or 5s";
constexpr std::string_view no_size =
    "is not a size: write a whole number and a unit (B, kB, MB, GB, KiB, MiB, GiB), such as 64MiB";
constexpr std::string_view no_count = "is not a whole number";

// The leading digits as a number; `text` keeps what follows. nullopt: no digits, or more than fit.
std::optional<std::int64_t> take_digits(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0 || text.starts_with('-')) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<std::int64_t> with_unit(std::string_view text, std::span<const Unit> units) {
  const auto number = take_digits(text);
  if (!number) return std::nullopt;
  if (text.starts_with(' ')) text.remove_prefix(1);
  for (const Unit& unit : units) {
    if (unit.name != text) continue;
    if (*number > std::numeric_limits<std::int64_t>::max() / unit.factor) return std::nullopt;
    return *number * unit.factor;
  }
  return std::nullopt;
}

std::optional<std::int64_t> count_of(std::string_view text) {
  const auto number = take_digits(text);
  return text.empty() ? number : std::nullopt;
}

tl::expected<Value, std::string> choice_of(std::string_view text, std::string_view choices) {
  const auto words = split_choices(choices);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == text) return Value{static_cast<std::int64_t>(i)};
  }
  std::string message = "is none of ";
  for (std::size_t i = 0; i < words.size(); ++i) message.append(i == 0 ? "" : ", ").append(words[i]);
  if (const auto meant = closest(text, words)) message.append("; did you mean ").append(*meant).append("?");
  return tl::unexpected(message);
}

tl::expected<Value, std::string> or_complaint(std::optional<std::int64_t> number,
                                              std::string_view complaint) {
  if (number) return Value{*number};
  return tl::unexpected(std::string(complaint));
}

std::string with_largest_unit(std::int64_t number, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (number % unit.factor == 0 && (number != 0 || unit.factor == 1)) {
      return std::to_string(number / unit.factor).append(unit.name);
    }
  }
  return std::to_string(number);
}

}  // namespace

std::vector<std::string_view> split_choices(std::string_view choices) {
  std::vector<std::string_view> words;
  while (!choices.empty()) {
    const auto bar = choices.find('|');
    words.push_back(choices.substr(0, bar));
    choices.remove_prefix(bar == std::string_view::npos ? choices.size() : bar + 1);
  }
  return words;
}

tl::expected<Value, std::string> parse_value(Kind kind, std::string_view text, std::string_view choices) {
  switch (kind) {
    case Kind::text:
      return Value{std::string(text)};
    case Kind::count:
      return or_complaint(count_of(text), no_count);
    case Kind::duration:
      if (!choices.empty() && text == choices) return Value{endless};
      return or_complaint(with_unit(text, duration_units), no_duration);
    case Kind::size:
      return or_complaint(with_unit(text, size_units), no_size);
    case Kind::choice:
      return choice_of(text, choices);
  }
  return tl::unexpected(std::string("is of no known kind"));
}

std::string format_value(Kind kind, const Value& value, std::string_view choices) {
  switch (kind) {
    case Kind::text:
      return std::get<std::string>(value);
    case Kind::count:
      return std::to_string(std::get<std::int64_t>(value));
    case Kind::duration:
      if (!choices.empty() && std::get<std::int64_t>(value) == endless) return std::string(choices);
      return with_largest_unit(std::get<std::int64_t>(value), duration_units);
    case Kind::size:
      return with_largest_unit(std::get<std::int64_t>(value), size_units);
    case Kind::choice:
      return std::string(split_choices(choices).at(static_cast<std::size_t>(std::get<std::int64_t>(value))));
  }
  return {};
}

}  // namespace outbox::config
