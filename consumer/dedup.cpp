#include "consumer/dedup.hpp"

#include <algorithm>
#include <vector>

#include "base/check.hpp"
#include "consumer/core/text.hpp"

namespace outbox {
namespace {

constexpr std::size_t reason_bytes_max = 2000;

using Bytes = std::span<const std::byte>;

Bytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
Bytes bytes_of(const Sha256& digest) {
  return std::as_bytes(std::span(digest));
}

pg::Params insert_params(std::string_view consumer, ProcessedState state,
                         std::span<const Candidate* const> candidates) {
  std::vector<Uuid> ids;
  std::vector<std::optional<Bytes>> payloads;
  std::vector<std::string_view> topics;
  std::vector<std::int32_t> partitions;
  std::vector<std::int64_t> offsets;
  for (const auto* candidate : candidates) {
    ids.push_back(candidate->message->msg_id());
    payloads.emplace_back(bytes_of(candidate->payload));
    topics.push_back(candidate->record->topic);
    partitions.push_back(candidate->record->partition);
    offsets.push_back(candidate->record->offset);
  }
  pg::Params params;
  params.text(consumer)
      .text(state == ProcessedState::applied ? "applied" : "dead")
      .uuids(ids)
      .bytes_array(payloads);
  params.texts(topics).i32s(partitions).i64s(offsets);
  return params;
}

}  // namespace

Result<Findings> Dedup::claim(std::span<const Candidate> batch, ProcessedState state) {
  Findings findings;
  auto candidates = to_insert(batch);
  if (candidates.empty()) return findings;
  const auto inserted =
      session_.exec_prepared(statements_.processed_insert, insert_params(consumer_, state, candidates));
  if (!inserted) return failure(inserted.error());
  for (int row = 0; row < inserted->size(); ++row) findings.inserted.insert(inserted->uuid(row, 0));
  std::erase_if(candidates, [&](const auto* c) { return findings.inserted.contains(c->message->msg_id()); });
  if (!candidates.empty())
    if (const Status looked = look_up(candidates, findings); !looked) return failure(looked.error());
  return findings;
}

Status Dedup::look_up(std::span<const Candidate* const> candidates, Findings& findings) {
  std::vector<Uuid> ids;
  for (const auto* candidate : candidates) ids.push_back(candidate->message->msg_id());
  pg::Params params;
  params.text(consumer_).uuids(ids);
  const auto rows = session_.exec_prepared(statements_.processed_look_up, params);
  if (!rows) return failure(rows.error());
  for (int row = 0; row < rows->size(); ++row) {
    Sha256 payload{};
    const auto stored = rows->text(row, 1);
    OUTBOX_CHECK(stored.size() == payload.size(), "a payload's hash has 32 bytes");
    std::ranges::transform(stored, payload.begin(), [](char c) { return static_cast<std::uint8_t>(c); });
    findings.known.emplace(rows->uuid(row, 0), payload);
  }
  return {};
}

Status Dedup::bury(const Candidate& candidate, std::string_view verdict, std::string_view reason) {
  const Record& record = *candidate.record;
  const auto nullable_bytes = [](pg::Params& params, const std::optional<std::string_view>& value) {
    value ? params.bytes(bytes_of(*value)) : params.null();
  };
  pg::Params params;
  params.text(consumer_);
  candidate.message ? params.uuid(candidate.message->msg_id()) : params.null();
  params.text(record.topic).i32(record.partition).i64(record.offset);
  nullable_bytes(params, record.key);
  nullable_bytes(params, record.body);
  params.text(headers_json(record.headers))
      .text(verdict)
      .text(to_text(reason, reason_bytes_max))
      .i32(record.attempt);
  params.bytes(bytes_of(candidate.payload));
  const auto inserted = session_.exec_prepared(statements_.dead_insert, params);
  if (!inserted) return failure(inserted.error());
  return {};
}

}  // namespace outbox
