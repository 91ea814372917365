#include "consumer/inbox/dedup.hpp"

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

Sha256 to_sha256(std::string_view stored) {
  Sha256 digest{};
  OUTBOX_CHECK(stored.size() == digest.size(), "a hash has 32 bytes");
  std::ranges::transform(stored, digest.begin(), [](char c) { return static_cast<std::uint8_t>(c); });
  return digest;
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
  params.text(consumer).text(to_string(state)).uuids(ids).bytes_array(payloads);
  params.texts(topics).i32s(partitions).i64s(offsets);
  return params;
}

}  // namespace

std::string_view to_string(ProcessedState state) noexcept {
  switch (state) {
    case ProcessedState::applied:
      return "applied";
    case ProcessedState::parked:
      return "parked";
    case ProcessedState::dead:
      return "dead";
    case ProcessedState::discarded:
      return "discarded";
  }
  return "unknown";
}

Result<Findings> Dedup::claim(std::span<const Candidate> batch, ProcessedState state) {
  Findings findings;
  const auto candidates = to_insert(batch);
  if (candidates.empty()) return findings;
  const auto inserted =
      session_.exec_prepared(statements_.processed_insert, insert_params(consumer_, state, candidates));
  if (!inserted) return failure(inserted.error());
  std::vector<Uuid> unclear;
  for (int row = 0; row < inserted->size(); ++row) {
    findings.inserted.insert(inserted->uuid(row, 0));
    if (inserted->boolean(row, 1)) unclear.push_back(inserted->uuid(row, 0));
    if (inserted->boolean(row, 2)) findings.keys_may_be_parked = true;
  }
  if (findings.inserted.size() < candidates.size()) findings.keys_may_be_parked = true;
  for (const auto* candidate : candidates)
    if (const Uuid& id = candidate->message->msg_id(); !findings.inserted.contains(id)) unclear.push_back(id);
  if (!unclear.empty())
    if (const Status looked = look_up(unclear, findings); !looked) return failure(looked.error());
  return findings;
}

Status Dedup::look_up(std::span<const Uuid> ids, Findings& findings) {
  pg::Params params;
  params.text(consumer_).uuids(ids);
  const auto rows = session_.exec_prepared(statements_.processed_look_up, params);
  if (!rows) return failure(rows.error());
  for (int row = 0; row < rows->size(); ++row) {
    const Uuid id = rows->uuid(row, 0);
    if (!findings.inserted.contains(id))
      findings.known.emplace(id, to_sha256(rows->text(row, 1)));
    else if (rows->boolean(row, 2))
      findings.forgotten.insert(id);
  }
  return {};
}

Status Dedup::set_state(const Candidate& candidate, ProcessedState state) {
  pg::Params params;
  params.text(consumer_).text(to_string(state)).uuid(candidate.message->msg_id());
  const auto updated = session_.exec_prepared(statements_.processed_state, params);
  if (!updated) return failure(updated.error());
  OUTBOX_CHECK(updated->affected() == 1, "a row that this transaction inserted is there");
  return {};
}

Result<std::set<ParkedKey>> Dedup::lock_parked(const std::set<ParkedKey>& keys) {
  std::set<ParkedKey> out;
  if (keys.empty()) return out;
  std::vector<std::string_view> topics;
  std::vector<std::optional<Bytes>> hashes;
  for (const auto& [topic, hash] : keys) {
    topics.push_back(topic);
    hashes.emplace_back(bytes_of(hash));
  }
  pg::Params params;
  params.text(consumer_).texts(topics).bytes_array(hashes);
  const auto rows = session_.exec_prepared(statements_.parked_lock, params);
  if (!rows) return failure(rows.error());
  for (int row = 0; row < rows->size(); ++row) {
    const auto asked = keys.find({rows->text(row, 0), to_sha256(rows->text(row, 1))});
    OUTBOX_CHECK(asked != keys.end(), "a key that is parked was asked for");
    out.insert(*asked);
  }
  return out;
}

Status Dedup::park_key(const Candidate& candidate) {
  pg::Params params;
  params.text(consumer_).text(candidate.record->topic).bytes(bytes_of(*candidate.record->key));
  const auto parked = session_.exec_prepared(statements_.park_key, params);
  return parked ? Status{} : failure(parked.error());
}

Result<ChainSeqs> Dedup::advance_seqs(const ChainSeqs& tops) {
  ChainSeqs before;
  if (tops.empty()) return before;
  std::vector<std::string_view> topics;
  std::vector<std::optional<Bytes>> chains;
  std::vector<std::int64_t> seqs;
  for (const auto& [chain, seq] : tops) {
    topics.push_back(chain.first);
    chains.emplace_back(bytes_of(chain.second));
    seqs.push_back(seq);
  }
  pg::Params params;
  params.text(consumer_).texts(topics).bytes_array(chains).i64s(seqs);
  const auto rows = session_.exec_prepared(statements_.seq_advance, params);
  if (!rows) return failure(rows.error());
  for (int row = 0; row < rows->size(); ++row) {
    if (rows->is_null(row, 2)) continue;
    const auto raised = tops.find({rows->text(row, 0), to_sha256(rows->text(row, 1))});
    OUTBOX_CHECK(raised != tops.end(), "a chain that was raised was asked for");
    before.emplace(raised->first, rows->integer(row, 2));
  }
  return before;
}

Result<bool> Dedup::move_offset(const Record& record) {
  pg::Params params;
  params.text(consumer_).text(record.topic).i32(record.partition).i64(record.epoch).i64(record.offset + 1);
  const auto rows = session_.exec_prepared(statements_.offset_move, params);
  if (!rows) return failure(rows.error());
  return rows->boolean(0, 0);
}

Status Dedup::bury(const Candidate& candidate, const Epitaph& epitaph) {
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
      .text(epitaph.verdict)
      .text(to_text(epitaph.error, reason_bytes_max))
      .i32(record.attempt);
  params.bytes(bytes_of(candidate.payload)).boolean(epitaph.queue == Queue::of_its_key);
  const auto inserted = session_.exec_prepared(statements_.dead_insert, params);
  if (!inserted) return failure(inserted.error());
  return {};
}

}  // namespace outbox
