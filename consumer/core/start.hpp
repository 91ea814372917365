#pragma once
// Where a partition without a committed offset starts. Kafka can't tell a new group from a known one whose
// topic got another partition, so each commit carries in its metadata how many partitions the topic had when
// the group first met it: those are started by start_at, and later ones at their beginning, whichever member
// comes first. Pure; any thread.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "outbox/consumer.hpp"

namespace outbox {

/// "outbox:born=12", the metadata of a commit.
[[nodiscard]] std::string born_metadata(std::int32_t partitions);
/// nullopt: not ours.
[[nodiscard]] std::optional<std::int32_t> parse_born(std::string_view metadata);

/// A partition of a topic as the group's coordinator knows it.
struct Committed {
  std::int32_t partition = 0;
  std::optional<std::int64_t> next{};
  std::string metadata{};
};

/// How many partitions the topic had when the group met it first: what a commit says; 0 where the group
/// committed, but not by this library; all of `topic` where it never did.
[[nodiscard]] std::int32_t born_of(std::span<const Committed> topic);

/// Where `partition`, which has no committed offset, starts.
[[nodiscard]] StartAt start_of(std::int32_t partition, std::int32_t born, StartAt start_at);

}  // namespace outbox
