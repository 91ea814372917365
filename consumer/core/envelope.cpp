#include "consumer/core/envelope.hpp"

#include <charconv>
#include <exception>

#include "consumer/core/text.hpp"

namespace outbox {
namespace {

using Value = std::optional<std::string_view>;

enum class ForeignIds { refuse, derive };

struct Preset {
  std::string_view id;
  std::string_view seq;
  std::string_view created_at;
  std::string_view source;
  ForeignIds foreign_ids;
};
// Order is precedence.
constexpr Preset plain{"outbox-id", "outbox-seq", "outbox-created-at", "outbox-source", ForeignIds::refuse};
constexpr Preset others[] = {
    {"ce_id", "", "ce_time", "ce_source", ForeignIds::derive},
    {"id", "", "", "", ForeignIds::derive},
};

struct Found {
  int count = 0;
  Value value;
  bool agree = true;
};

Found find(const Record& record, std::string_view name) {
  Found found;
  if (name.empty()) return found;
  for (const auto& header : record.headers) {
    if (header.name != name) continue;
    if (found.count++ > 0 && header.value != found.value) found.agree = false;
    found.value = header.value;
  }
  return found;
}

std::optional<std::int64_t> read_number(const Value& text) {
  std::int64_t number = 0;
  if (!text) return std::nullopt;
  const auto end = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc{} || at != end) return std::nullopt;
  return number;
}

std::optional<int> read_field(std::string_view text, std::size_t from, std::size_t count) {
  if (text.size() < from + count) return std::nullopt;
  const auto number = read_number(text.substr(from, count));
  if (!number || *number < 0) return std::nullopt;
  return static_cast<int>(*number);
}

/// RFC 3339 in UTC with up to six digits of fraction, as relays write it; anything else is no time.
std::optional<Message::Time> read_time(const Value& value) {
  using namespace std::chrono;
  if (!value || value->size() < 20 || value->back() != 'Z') return std::nullopt;
  const auto text = *value;
  if (text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':')
    return std::nullopt;
  const auto y = read_field(text, 0, 4), mo = read_field(text, 5, 2), d = read_field(text, 8, 2);
  const auto h = read_field(text, 11, 2), mi = read_field(text, 14, 2), s = read_field(text, 17, 2);
  if (!y || !mo || !d || !h || !mi || !s || *h > 23 || *mi > 59 || *s > 60) return std::nullopt;
  const year_month_day date{year{*y}, month{static_cast<unsigned>(*mo)}, day{static_cast<unsigned>(*d)}};
  if (!date.ok()) return std::nullopt;
  int micros_of = 0;
  if (text.size() > 20) {
    std::string fraction(text.substr(20, text.size() - 21));
    if (text[19] != '.' || fraction.empty() || fraction.size() > 6) return std::nullopt;
    fraction.resize(6, '0');
    const auto parsed = read_field(fraction, 0, 6);
    if (!parsed) return std::nullopt;
    micros_of = *parsed;
  }
  return Message::Time{sys_days{date} + hours{*h} + minutes{*mi} + seconds{*s} + microseconds{micros_of}};
}

Malformed malformed(std::string_view header, std::string_view why) {
  return {std::string("header ").append(header).append(" ").append(why)};
}

std::variant<Message::Identity, Malformed> identity(const Record& record, const Preset& preset,
                                                    const Found& id) {
  if (!id.agree) return malformed(preset.id, "is there more than once, with different values");
  if (!id.value) return malformed(preset.id, "is null");
  if (id.value->empty()) return malformed(preset.id, "is empty");
  Message::Identity out;
  out.source = find(record, preset.source).value.value_or("");
  if (const auto uuid = parse_uuid(*id.value)) {
    out.msg_id = *uuid;
  } else if (preset.foreign_ids == ForeignIds::refuse) {
    return malformed(preset.id, "is no uuid");
  } else if (!is_text(*id.value) || !is_text(out.source)) {
    return malformed(preset.id, "is neither a uuid nor UTF-8 text");
  } else if (id.value->size() > foreign_id_bytes_max || out.source.size() > foreign_id_bytes_max) {
    return malformed(preset.id, "is longer than 1,024 bytes");
  } else {
    out.msg_id = foreign_id(preset.source.empty() ? record.topic : out.source, *id.value);
  }
  out.seq = read_number(find(record, preset.seq).value);
  out.created_at = read_time(find(record, preset.created_at).value);
  return out;
}

std::variant<Message::Identity, Malformed> named_by_service(std::string_view topic, const std::string& name) {
  if (const auto uuid = parse_uuid(name)) return Message::Identity{*uuid, {}, {}, {}};
  if (name.empty()) return Malformed{"id_of answers an empty name"};
  if (!is_text(name)) return Malformed{"id_of answers what is no UTF-8 text"};
  if (name.size() > foreign_id_bytes_max) return Malformed{"id_of answers a name longer than 1,024 bytes"};
  return Message::Identity{foreign_id(topic, name), {}, {}, {}};
}

}  // namespace

std::variant<Message::Identity, Malformed> read_envelope(const Record& record, const IdOf& id_of) {
  if (const auto id = find(record, plain.id); id.count > 0) return identity(record, plain, id);
  if (id_of) {
    try {
      if (const auto name = id_of(record)) return named_by_service(record.topic, *name);
    } catch (const std::exception& e) {
      return Malformed{std::string("id_of failed: ") + e.what()};
    }
  }
  for (const auto& preset : others)
    if (const auto id = find(record, preset.id); id.count > 0) return identity(record, preset, id);
  return Malformed{id_of ? "id_of answers nothing, and no header names it: none of outbox-id, ce_id, id"
                         : "no header names it: none of outbox-id, ce_id, id"};
}

}  // namespace outbox
