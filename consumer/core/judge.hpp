#pragma once
// The decisions of deduplication, as plain functions: what to insert for a batch, and what each of its
// messages is, given which ids were inserted and which rows were there before. Pure; any thread.

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "outbox/inbox.hpp"

namespace outbox {

/// One record of a batch, its envelope read.
struct Candidate {
  const Record* record = nullptr;
  std::optional<Message> message;  ///< nullopt: malformed
  std::string malformed;           ///< why
  Sha256 payload{};
};
[[nodiscard]] Candidate read_candidate(const Record& record, const IdOf& id_of = {});
/// A record whose id is known already, whatever its headers and id_of say now.
[[nodiscard]] Candidate known_candidate(const Record& record, const Uuid& msg_id, const IdOf& id_of = {});

/// Shape: one candidate for each distinct id, the first in the batch's order, sorted by id: transactions that
/// insert in one order can't deadlock on it.
[[nodiscard]] std::vector<const Candidate*> to_insert(std::span<const Candidate> batch);

/// What the database said: every distinct id is in one of these, or it is unseen.
struct Findings {
  std::unordered_set<Uuid> inserted{};
  std::unordered_map<Uuid, Sha256> known{};  ///< rows that were there, with their payload's hash
  std::unordered_set<Uuid> forgotten{};      ///< of the inserted ones: below the low-water mark
  bool keys_may_be_parked = false;           ///< some key of the consumer's, or it can't be told
};

struct Judgement {
  Verdict verdict = Verdict::fresh;
  std::optional<Sha256> known{};           ///< of the first copy; set for duplicate and conflict
  std::optional<std::int64_t> overtook{};  ///< the later seq that was applied; set for stale
  bool parked = false;                     ///< fresh, but its key is parked: it goes to the key's queue

  [[nodiscard]] bool to_apply() const { return verdict == Verdict::fresh && !parked; }
};

/// Topic, and SHA-256 of the key.
using ParkedKey = std::pair<std::string_view, Sha256>;
[[nodiscard]] std::optional<ParkedKey> key_of(const Message& message);

/// Shape: the keys of the fresh messages.
[[nodiscard]] std::set<ParkedKey> fresh_keys(std::span<const Candidate> batch,
                                             std::span<const Judgement> judgements);
void judge_parked(std::span<const Candidate> batch, std::span<Judgement> judgements,
                  const std::set<ParkedKey>& parked);

/// Shape: one judgement for each candidate, in order; nullopt: an id that was neither inserted nor found.
/// That is a row that came or went between the two statements, so the transaction must be repeated: it is
/// never called fresh. Of two copies within the batch the first can be fresh (or expired, where its first row
/// may have been forgotten); the others are judged by its payload.
[[nodiscard]] std::optional<std::vector<Judgement>> judge(std::span<const Candidate> batch,
                                                          const Findings& findings);

}  // namespace outbox
