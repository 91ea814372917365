#pragma once
// Identity for messages whose producer names them by text that is no uuid, or not in a header at all.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outbox/message.hpp"
#include "outbox/uuid.hpp"

namespace outbox {

/// The namespace of foreign ids: uuid version 5 of "outbox:foreign-id" in the RFC's URL namespace. Fixed for
/// ever: another one would make every message that was already applied look fresh.
inline constexpr std::string_view foreign_id_namespace = "bd24c7d2-ea7c-5dad-806f-9ae0570cad62";

/// Shape: uuid version 5 of `text` in foreign_id_namespace: the same text always gives the same id, in any
/// language. Source: RFC 9562, section 5.5; SQL: uuid_generate_v5(namespace, text).
[[nodiscard]] Uuid foreign_id(std::string_view text);

/// Shape: the id of an event that is unique only together with its source, as CloudEvents are, or with its
/// topic: foreign_id() of source or topic, a line feed, and id.
[[nodiscard]] Uuid foreign_id(std::string_view source, std::string_view id);

/// The business's own name of a message within its topic, read from its record; nullopt: it has none. What is
/// no uuid becomes foreign_id(topic, name).
using IdOf = std::function<std::optional<std::string>(const Record&)>;

/// Shape: an IdOf for bodies in JSON: what stands at `pointers` ("/merchant", "/order/number"), as a JSON array
/// of the values. Nothing where the body is no JSON, where a pointer meets nothing, or where a value is
/// neither text, nor a whole number of 64 bits, nor true or false: 0.1 has more than one spelling. Errors:
/// std::invalid_argument: no pointers, or one that is none. Thread: any. Source: RFC 6901.
[[nodiscard]] IdOf id_from_json(const std::vector<std::string>& pointers);

}  // namespace outbox
