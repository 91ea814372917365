#include "relay/core/kafka/partitioner.hpp"

#include <algorithm>
#include <charconv>

#include "base/check.hpp"

namespace outbox::relay {
namespace {

constexpr std::uint32_t seed = 0x9747b28c;
constexpr std::uint32_t multiplier = 0x5bd1e995;
constexpr unsigned shift = 24;

std::uint32_t byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

std::uint32_t little_endian_word(std::string_view bytes, std::size_t at) {
  return byte_at(bytes, at) | byte_at(bytes, at + 1) << 8 | byte_at(bytes, at + 2) << 16 |
         byte_at(bytes, at + 3) << 24;
}

PartitionAsked no_such(const std::string& where, std::string_view asked, std::int32_t partitions) {
  return {std::nullopt, where + " asks for partition '" + std::string(asked.substr(0, 40)) +
                            "', the topic has 0 to " + std::to_string(partitions - 1)};
}

}  // namespace

std::uint32_t murmur2(std::string_view bytes) {
  std::uint32_t hash = seed ^ static_cast<std::uint32_t>(bytes.size());
  std::size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    std::uint32_t word = little_endian_word(bytes, at) * multiplier;
    word ^= word >> shift;
    hash = hash * multiplier ^ word * multiplier;
  }
  if (at < bytes.size()) {
    for (std::size_t left = bytes.size() - at; left > 0; --left)
      hash ^= byte_at(bytes, at + left - 1) << (left - 1) * 8;
    hash *= multiplier;
  }
  hash ^= hash >> 13;
  hash *= multiplier;
  return hash ^ hash >> 15;
}

Partition partition_of_key(std::string_view key, std::int32_t partitions) {
  OUTBOX_CHECK(partitions > 0, "a topic that is published to has partitions");
  const auto positive = static_cast<std::int32_t>(murmur2(key) & 0x7fffffff);
  return Partition{positive % partitions};
}

PartitionAsked partition_asked(const Message& message, std::string_view name, std::int32_t partitions) {
  if (message.partition) {
    const std::int32_t number = message.partition->value;
    if (number >= 0 && number < partitions) return {message.partition, {}};
    return no_such("source.partition_column", std::to_string(number), partitions);
  }
  if (name.empty()) return {};
  const auto header = std::ranges::find(message.headers, name, &Header::name);
  if (header == message.headers.end() || !header->value) return {};
  const std::string_view text = *header->value;
  std::int32_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (whole && number >= 0 && number < partitions) return {Partition{number}, {}};
  return no_such("header " + std::string(name), text, partitions);
}

Partition partition_of(const Message& message, std::int32_t partitions) {
  if (message.key) return partition_of_key(*message.key, partitions);
  const auto& id = message.msg_id.bytes;
  return partition_of_key({reinterpret_cast<const char*>(id.data()), id.size()}, partitions);
}

}  // namespace outbox::relay
