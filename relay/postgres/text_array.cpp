#include "relay/postgres/text_array.hpp"

#include "base/check.hpp"

namespace outbox::relay {

TextArray::TextArray(std::string_view binary) : rest_(binary) {
  const std::int32_t dimensions = take_int32();
  OUTBOX_CHECK(dimensions == 0 || dimensions == 1, "headers come as an array of one dimension");
  static_cast<void>(take_int32());  // whether there are NULLs: each element says so itself
  static_cast<void>(take_int32());  // the element's type: the query says text[]
  if (dimensions == 0) return;
  size_ = take_int32();
  static_cast<void>(take_int32());  // the lower bound
}

std::optional<std::string_view> TextArray::next() {
  const std::int32_t length = take_int32();
  if (length < 0) return std::nullopt;
  const auto bytes = static_cast<std::size_t>(length);
  OUTBOX_CHECK(bytes <= rest_.size(), "an array's element lies inside it");
  const std::string_view element = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return element;
}

std::int32_t TextArray::take_int32() {
  OUTBOX_CHECK(rest_.size() >= 4, "an array is as long as its header says");
  std::uint32_t bits = 0;
  for (const char c : rest_.substr(0, 4)) bits = bits << 8 | static_cast<unsigned char>(c);
  rest_.remove_prefix(4);
  return static_cast<std::int32_t>(bits);
}

}  // namespace outbox::relay
