#include "pg/timestamp.hpp"

#include <charconv>
#include <limits>

namespace outbox::pg {
namespace {

using Wire = std::numeric_limits<std::int64_t>;

// Reads digits and separators from the front; once something is missing it stays failed.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  int number() {
    int value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{} || value < 0) failed_ = true;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) { failed_ = !take(c) || failed_; }
  int fraction_micros() {
    const std::size_t before = rest_.size();
    int value = number();
    for (std::size_t digits = before - rest_.size(); digits < 6; ++digits) value *= 10;
    return value;
  }
  [[nodiscard]] bool complete() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

std::chrono::seconds zone(Cursor& in) {
  const bool west = in.take('-');
  if (!west) in.expect('+');
  std::chrono::seconds offset = std::chrono::hours{in.number()};
  if (in.take(':')) offset += std::chrono::minutes{in.number()};
  if (in.take(':')) offset += std::chrono::seconds{in.number()};
  return west ? -offset : offset;
}

}  // namespace

std::int64_t timestamp_to_wire(WallTime t) {
  if (t == WallTime::max()) return Wire::max();
  if (t == WallTime::min()) return Wire::min();
  return to_postgres_micros(t);
}

WallTime timestamp_from_wire(std::int64_t micros) {
  if (micros == Wire::max()) return WallTime::max();
  if (micros == Wire::min()) return WallTime::min();
  return from_postgres_micros(micros);
}

std::optional<WallTime> parse_timestamp(std::string_view text) {
  if (text == "infinity") return WallTime::max();
  if (text == "-infinity") return WallTime::min();
  Cursor in{text};
  const int year = in.number();
  in.expect('-');
  const int month = in.number();
  in.expect('-');
  const int day = in.number();
  in.expect(' ');
  Micros time = std::chrono::hours{in.number()};
  in.expect(':');
  time += std::chrono::minutes{in.number()};
  in.expect(':');
  time += std::chrono::seconds{in.number()};
  if (in.take('.')) time += Micros{in.fraction_micros()};
  time -= zone(in);
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!in.complete() || !date.ok()) return std::nullopt;
  return WallTime{std::chrono::sys_days{date}} + time;
}

}  // namespace outbox::pg
