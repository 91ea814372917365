#pragma once
// Identity for messages whose producer names them by text that is no uuid.

#include <string_view>

#include "outbox/uuid.hpp"

namespace outbox {

/// The namespace of foreign ids: uuid version 5 of "outbox:foreign-id" in the RFC's URL namespace. Fixed for
/// ever: another one would make every message that was already applied look fresh.
inline constexpr std::string_view foreign_id_namespace = "bd24c7d2-ea7c-5dad-806f-9ae0570cad62";

/// Shape: uuid version 5 of `text` in foreign_id_namespace: the same text always gives the same id, in any
/// language. Source: RFC 9562, section 5.5; SQL: uuid_generate_v5(namespace, text).
[[nodiscard]] Uuid foreign_id(std::string_view text);

/// Shape: the id of an event that is unique only together with its source, as CloudEvents are: foreign_id()
/// of source, a line feed, and id.
[[nodiscard]] Uuid foreign_id(std::string_view source, std::string_view id);

}  // namespace outbox
