#pragma once
// Which names a topic can have, so that a row with another is told so before anything is sent. Pure.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace outbox::relay {

inline constexpr std::size_t topic_name_bytes_max = 249;
inline constexpr std::string_view ledger_topic_prefix =
    "outboxd-ledger-";  ///< of each pipeline's, where none is set

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

/// Shape: why no row may be sent there, whatever its name and the relay's rights; nullopt: one may. A
/// transaction that names a topic of Kafka's own is refused as a whole. Source:
/// org.apache.kafka.common.internals.Topic; __cluster_metadata is the controllers' log.
[[nodiscard]] constexpr std::optional<std::string_view> no_destination_because(std::string_view name) {
  constexpr std::array<std::string_view, 4> of_kafka{"__consumer_offsets", "__transaction_state",
                                                     "__share_group_state", "__cluster_metadata"};
  if (std::ranges::find(of_kafka, name) != of_kafka.end())
    return "it is Kafka's own, which takes messages from nobody else: correct the row's topic";
  if (name.starts_with(ledger_topic_prefix))
    return "it is the ledger of a pipeline, which takes no rows: correct the row's topic";
  return std::nullopt;
}

}  // namespace outbox::relay
