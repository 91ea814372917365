#pragma once
// What stands behind a name in a log line: a whole number, a real, a truth value, a duration or text. Text is
// a view: a Field lives only for the call that writes it. Never put a payload, a header's value or a secret
// into one.

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <variant>

namespace outbox::log {

template <class T>
concept NumberedId = requires(const T& id) {
  { id.value } -> std::convertible_to<std::int64_t>;
  requires std::integral<std::remove_cvref_t<decltype(id.value)>>;
};

class Value {
 public:
  // Implicit on purpose: a call reads {{"lane", lane}, {"epoch", epoch}, {"wait", 250ms}}.
  template <std::same_as<bool> T>
  Value(T v) : held_(v) {}  // NOLINT(google-explicit-constructor)
  template <std::signed_integral T>
  Value(T v) : held_(static_cast<std::int64_t>(v)) {}  // NOLINT(google-explicit-constructor)
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  Value(T v) : held_(static_cast<std::uint64_t>(v)) {}  // NOLINT(google-explicit-constructor)
  template <std::floating_point T>
  Value(T v) : held_(static_cast<double>(v)) {}  // NOLINT(google-explicit-constructor)
  template <std::convertible_to<std::string_view> T>
  Value(const T& v) : held_(std::string_view{v}) {}  // NOLINT(google-explicit-constructor)
  template <NumberedId T>
  Value(const T& v) : held_(static_cast<std::int64_t>(v.value)) {}  // NOLINT(google-explicit-constructor)
  template <class Rep, class Period>
  Value(std::chrono::duration<Rep, Period> v)  // NOLINT(google-explicit-constructor)
      : held_(std::chrono::duration_cast<std::chrono::microseconds>(v)) {}

  using Held =
      std::variant<bool, std::int64_t, std::uint64_t, double, std::chrono::microseconds, std::string_view>;
  [[nodiscard]] const Held& held() const { return held_; }

 private:
  Held held_;
};

struct Field {
  std::string_view name;  ///< snake_case, ours, never from outside
  Value value;
};

}  // namespace outbox::log
