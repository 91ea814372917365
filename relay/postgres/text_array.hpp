#pragma once
// PostgreSQL's binary form of a one-dimensional text[], read in place: the views point into the bytes given.
// Source: array_send in PostgreSQL's arrayfuncs.c. Bytes that are no such array break an invariant and abort.

#include <cstdint>
#include <optional>
#include <string_view>

namespace outbox::relay {

class TextArray {
 public:
  explicit TextArray(std::string_view binary);

  [[nodiscard]] std::int32_t size() const { return size_; }
  /// The next element; nullopt: a NULL. Called at most size() times.
  [[nodiscard]] std::optional<std::string_view> next();

 private:
  [[nodiscard]] std::int32_t take_int32();

  std::string_view rest_;
  std::int32_t size_ = 0;
};

}  // namespace outbox::relay
