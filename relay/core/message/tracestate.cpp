#include "relay/core/message/tracestate.hpp"

#include <algorithm>

namespace outbox::relay {
namespace {

constexpr std::string_view key = "outboxd=";
constexpr std::size_t entries_max = 32;
constexpr std::int64_t id_digits_max = 20;
constexpr std::int64_t lengths_max = 10;  // of name and value, as varints

const Header* named(std::span<const Header> headers, std::string_view name) {
  const auto at = std::ranges::find(headers, name, &Header::name);
  return at == headers.end() || !at->value ? nullptr : &*at;
}

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

}  // namespace

bool has_traceparent(std::span<const Header> headers) {
  return named(headers, traceparent_name) != nullptr;
}

std::string stamped(std::string_view pipeline, RowId id, std::span<const Header> headers) {
  std::string out{key};
  out.append(pipeline).append(":").append(std::to_string(id.value));
  const Header* own = named(headers, tracestate_name);
  std::string_view rest = own != nullptr ? *own->value : std::string_view{};
  for (std::size_t entries = 1; !rest.empty() && entries < entries_max;) {
    const auto end = rest.find(',');
    const std::string_view entry = trimmed(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (entry.empty() || entry.starts_with(key)) continue;
    out.append(",").append(entry);
    ++entries;
  }
  return out;
}

std::int64_t stamp_size_max(std::string_view pipeline) {
  return lengths_max + static_cast<std::int64_t>(tracestate_name.size() + key.size() + pipeline.size() + 2) +
         id_digits_max;
}

}  // namespace outbox::relay
