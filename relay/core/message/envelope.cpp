#include "relay/core/message/envelope.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "relay/core/message/tracestate.hpp"

namespace outbox::relay {
namespace {

constexpr std::string_view reserved_prefix = "outbox-";

// Names that only the relay gives. ce_type and content-type are the application's to know: a row may set
// them.
constexpr std::array<std::string_view, 4> cloudevents_identity{"ce_id", "ce_source", "ce_specversion",
                                                               "ce_time"};
constexpr std::string_view cloudevents_type = "ce_type";
constexpr std::string_view content_type_name = "content-type";
constexpr std::string_view debezium_identity = "id";
constexpr std::string_view due_at_name = "outbox-due-at";

constexpr std::int64_t batch_overhead = 61;  // of a record batch, up to its first record
constexpr std::size_t seq_digits_max = 20;   // of a bigint with its sign
constexpr std::int64_t record_slack =
    12;  // attributes, deltas and varints at their longest in a batch of one

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_reserved(std::string_view name, HeaderPreset preset) {
  if (same_ignoring_case(name.substr(0, reserved_prefix.size()), reserved_prefix)) return true;
  if (preset == HeaderPreset::debezium) return same_ignoring_case(name, debezium_identity);
  if (preset != HeaderPreset::cloudevents) return false;
  return std::ranges::any_of(cloudevents_identity, [&](auto own) { return same_ignoring_case(name, own); });
}

bool row_names(const Message& message, std::string_view wanted) {
  return std::ranges::any_of(message.headers,
                             [&](const Header& h) { return same_ignoring_case(h.name, wanted); });
}

// A zigzag varint: a length of up to 63 takes one byte, each further byte seven bits.
std::int64_t varint_size(std::size_t length) {
  std::int64_t size = 1;
  for (length >>= 6; length != 0; length >>= 7) ++size;
  return size;
}

std::int64_t field_size(std::size_t length) {
  return varint_size(length) + static_cast<std::int64_t>(length);
}

std::int64_t header_size(std::size_t name, std::size_t value) {
  return field_size(name) + field_size(value);
}

template <std::size_t n>
std::string_view text_of(const std::array<char, n>& chars) {
  return {chars.data(), n};
}

void write_digits(char* out, int width, std::int64_t number) {
  for (int i = width - 1; i >= 0; --i, number /= 10) out[i] = static_cast<char>('0' + number % 10);
}

void write_id(std::array<char, 36>& out, const Uuid& id) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::size_t at = 0;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out[at++] = '-';
    out[at++] = digits[id.bytes[i] >> 4];
    out[at++] = digits[id.bytes[i] & 15];
  }
}

}  // namespace

Envelope::Envelope(EnvelopeOptions options) : options_(std::move(options)) {
  const std::size_t source = options_.source.size();
  fixed_size_ = batch_overhead + record_slack + header_size(9, id_.size()) + header_size(10, seq_digits_max) +
                header_size(17, time_.size()) + header_size(13, source);
  if (options_.preset == HeaderPreset::debezium) fixed_size_ += header_size(2, id_.size());
  if (options_.preset == HeaderPreset::cloudevents) {
    fixed_size_ += header_size(14, 3) + header_size(5, id_.size()) + header_size(9, source) +
                   header_size(7, time_.size()) + header_size(12, options_.content_type.size());
  }
}

Result<std::span<const Header>> Envelope::headers(const Message& message) {
  for (const auto& own : message.headers) {
    if (!is_reserved(own.name, options_.preset)) continue;
    return failure(Disposition::quarantine,
                   "header '" + std::string{own.name} + "' of the row has a name that only the relay gives",
                   "", "rename it where the row is written");
  }
  add_own(message);
  if (options_.preset == HeaderPreset::debezium) headers_.push_back({debezium_identity, text_of(id_)});
  if (options_.preset == HeaderPreset::cloudevents) add_cloudevents(message);
  add_row(message);
  return headers_;
}

// Header names are the row's; W3C's are lower case, and Kafka tells cases apart.
void Envelope::add_row(const Message& message) {
  const bool stamps = options_.tracestate == Tracestate::stamp && has_traceparent(message.headers);
  for (const Header& own : message.headers)
    if (!stamps || own.name != tracestate_name) headers_.push_back(own);
  if (!stamps) return;
  tracestate_ = stamped(options_.source, message.id, message.headers);
  headers_.push_back({tracestate_name, tracestate_});
}

void Envelope::add_own(const Message& message) {
  write_id(id_, message.msg_id);
  write_time(message.created_at);
  const auto* seq_end = std::to_chars(seq_.data(), seq_.data() + seq_.size(), message.id.value).ptr;
  headers_.clear();
  headers_.push_back({"outbox-id", text_of(id_)});
  headers_.push_back(
      {"outbox-seq", std::string_view{seq_.data(), static_cast<std::size_t>(seq_end - seq_.data())}});
  headers_.push_back({"outbox-created-at", text_of(time_)});
  headers_.push_back({"outbox-source", options_.source});
  if (!message.available_at) return;
  due_at_ = rfc3339(*message.available_at);
  headers_.push_back({due_at_name, due_at_});
}

void Envelope::add_cloudevents(const Message& message) {
  headers_.push_back({"ce_specversion", "1.0"});
  headers_.push_back({"ce_id", text_of(id_)});
  headers_.push_back({"ce_source", options_.source});
  headers_.push_back({"ce_time", text_of(time_)});
  if (!row_names(message, cloudevents_type)) headers_.push_back({cloudevents_type, message.topic});
  const bool typed = message.body && !options_.content_type.empty();  // a tombstone has no content
  if (typed && !row_names(message, content_type_name))
    headers_.push_back({content_type_name, options_.content_type});
}

// Rows of one claim mostly share their second, so its text is kept and only the microseconds are written
// again.
void Envelope::write_time(WallTime at) {
  const auto second = std::chrono::floor<std::chrono::seconds>(at);
  if (second != time_second_) {
    const auto text = rfc3339(second);
    std::memcpy(time_.data(), text.data(), std::min(text.size(), time_.size()));
    time_second_ = second;
  }
  write_digits(time_.data() + 20, 6, (at - second).count());
}

std::int64_t Envelope::encoded_size(const Message& message) const {
  std::int64_t size = fixed_size_ + field_size(message.key ? message.key->size() : 0) +
                      field_size(message.body ? message.body->size() : 0);
  for (const auto& own : message.headers)
    size += header_size(own.name.size(), own.value ? own.value->size() : 0);
  if (message.available_at) size += header_size(due_at_name.size(), time_.size());
  if (options_.tracestate == Tracestate::stamp && has_traceparent(message.headers))
    size += stamp_size_max(options_.source);
  if (options_.preset == HeaderPreset::cloudevents)
    size += header_size(cloudevents_type.size(), message.topic.size());
  return size;
}

}  // namespace outbox::relay
