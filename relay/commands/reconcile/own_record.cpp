#include "relay/commands/reconcile/own_record.hpp"

#include <charconv>

#include "pg/timestamp.hpp"

namespace outbox::commands {
namespace {

std::optional<std::int64_t> parse_id(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

// "2026-11-29T16:05:00.123456Z", and nothing else.
std::optional<WallTime> parse_created_at(std::string_view text) {
  if (text.size() != 27 || text[10] != 'T' || text[26] != 'Z') return std::nullopt;
  std::string as_postgres{text.substr(0, 26)};
  as_postgres[10] = ' ';
  return pg::parse_timestamp(as_postgres + "+00");
}

}  // namespace

std::optional<OwnRecord> own_record(const relay::ReadRecord& record, std::string_view source) {
  if (record.header("outbox-source") != source) return std::nullopt;
  OwnRecord out;
  if (const auto id = record.header("outbox-id")) out.msg_id = parse_uuid(*id);
  if (const auto seq = record.header("outbox-seq")) out.id = parse_id(*seq);
  if (const auto at = record.header("outbox-created-at")) out.created_at = parse_created_at(*at);
  if (record.body) out.body = sha256(*record.body);
  return out;
}

}  // namespace outbox::commands
