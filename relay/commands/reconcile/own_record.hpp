#pragma once
// A record that this outbox's relay wrote, told by its headers. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "base/uuid.hpp"
#include "relay/kafka/reader.hpp"

namespace outbox::commands {

struct OwnRecord {
  std::optional<Uuid> msg_id{};          ///< outbox-id; nullopt: not one that a relay writes
  std::optional<std::int64_t> id{};      ///< outbox-seq
  std::optional<WallTime> created_at{};  ///< outbox-created-at
  std::optional<Sha256> body{};          ///< nullopt: a tombstone
};

/// Source: docs/protocol.md, Headers. nullopt: it comes from somewhere else.
[[nodiscard]] std::optional<OwnRecord> own_record(const relay::ReadRecord& record, std::string_view source);

}  // namespace outbox::commands
