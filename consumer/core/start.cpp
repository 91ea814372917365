#include "consumer/core/start.hpp"

#include <charconv>

namespace outbox {
namespace {
constexpr std::string_view prefix = "outbox:born=";
}

std::string born_metadata(std::int32_t partitions) {
  return std::string(prefix) + std::to_string(partitions);
}

std::optional<std::int32_t> parse_born(std::string_view metadata) {
  if (!metadata.starts_with(prefix)) return std::nullopt;
  metadata.remove_prefix(prefix.size());
  std::int32_t partitions = 0;
  const auto end = metadata.data() + metadata.size();
  const auto [at, error] = std::from_chars(metadata.data(), end, partitions);
  if (error != std::errc{} || at != end || partitions < 0) return std::nullopt;
  return partitions;
}

std::int32_t born_of(std::span<const Committed> topic) {
  bool known = false;
  for (const auto& one : topic) {
    if (!one.next) continue;
    known = true;
    if (const auto born = parse_born(one.metadata)) return *born;
  }
  return known ? 0 : static_cast<std::int32_t>(topic.size());
}

StartAt start_of(std::int32_t partition, std::int32_t born, StartAt start_at) {
  return partition < born ? start_at : StartAt::beginning;
}

}  // namespace outbox
