#pragma once
// From a record's headers to the message's identity, for the three presets that the relay can send:
//   plain        outbox-id (a uuid), outbox-seq, outbox-created-at, outbox-source
//   cloudevents  ce_id, ce_source, ce_time; an id that is no uuid becomes foreign_id(source, id)
//   debezium     id; an id that is no uuid becomes foreign_id(topic, id)
// The first of them that is there decides, in this order: ce_ headers may ride along on a plain message, and
// `id` is a name that anybody may use. Behind outbox-id, and before the other two, comes what the service
// itself reads an id from: foreign_id(topic, its answer) where that is no uuid. So the same text on two topics,
// or of two sources, names two messages. Pure; any thread.

#include <string>
#include <variant>

#include "outbox/foreign_id.hpp"
#include "outbox/message.hpp"

namespace outbox {

inline constexpr std::size_t foreign_id_bytes_max = 1024;

/// Why a record has no identity; for people.
struct Malformed {
  std::string reason;
};

/// Shape: the identity, whose views point into the record; `id_of` may be empty. Malformed: no identifying
/// header, and id_of answers nothing; an id that is null, empty, no uuid where only a uuid will do, no UTF-8
/// or too long; a header that is there twice with different values; an id_of that throws. What is only
/// informative (seq, time, source) is left out where it can't be read, and never makes a record malformed.
[[nodiscard]] std::variant<Message::Identity, Malformed> read_envelope(const Record& record,
                                                                       const IdOf& id_of = {});

}  // namespace outbox
