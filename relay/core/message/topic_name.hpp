#pragma once
// Which names a topic can have, so that a row with another is told so before anything is sent. Pure.

#include <optional>
#include <string_view>

namespace outbox::relay {

inline constexpr std::size_t topic_name_bytes_max = 249;

/// Shape: why `name` can be no topic's; nullopt: it can. Source: org.apache.kafka.common.internals.Topic
[[nodiscard]] constexpr std::optional<std::string_view> topic_name_fault(std::string_view name) {
  if (name.empty()) return "a topic's name is not empty";
  if (name == "." || name == "..") return "a topic is not named '.' or '..'";
  if (name.size() > topic_name_bytes_max) return "a topic's name has at most 249 characters";
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool fine = letter || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!fine) return "a topic's name has only letters, digits, '.', '_' and '-'";
  }
  return std::nullopt;
}

}  // namespace outbox::relay
