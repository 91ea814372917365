#pragma once
// The decisions of deduplication, as plain functions: what to insert for a batch, and what each of its
// messages is, given which ids were inserted and which rows were there before. Pure; any thread.

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "consumer/core/digest.hpp"
#include "outbox/inbox.hpp"

namespace outbox {

/// One record of a batch, its envelope read.
struct Candidate {
  const Record* record = nullptr;
  std::optional<Message> message;  ///< nullopt: malformed
  std::string malformed;           ///< why
  Sha256 payload{};
};
[[nodiscard]] Candidate read_candidate(const Record& record);

/// Shape: one candidate for each distinct id, the first in the batch's order, sorted by id: transactions that
/// insert in one order can't deadlock on it.
[[nodiscard]] std::vector<const Candidate*> to_insert(std::span<const Candidate> batch);

/// What the database said: every distinct id is in one of these, or it is unseen.
struct Findings {
  std::unordered_set<Uuid> inserted;
  std::unordered_map<Uuid, Sha256> known;  ///< rows that were there, with their payload's hash
};

struct Judgement {
  Verdict verdict = Verdict::fresh;
  std::optional<Sha256> known;  ///< of the first copy; set for duplicate and conflict
};

/// Shape: one judgement for each candidate, in order; nullopt: an id that was neither inserted nor found.
/// That is a row that came or went between the two statements, so the transaction must be repeated: it is
/// never called fresh. Of two copies within the batch the first can be fresh; the others are judged by its
/// payload.
[[nodiscard]] std::optional<std::vector<Judgement>> judge(std::span<const Candidate> batch,
                                                          const Findings& findings);

}  // namespace outbox
