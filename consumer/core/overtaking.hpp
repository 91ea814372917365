#pragma once
// Guard::by_seq as plain functions: which chains a batch touches, and which of its fresh messages come after
// a later one of theirs. A chain is a source's key within a topic: outbox-seq rises along it, and has no
// meaning between two sources. Pure; any thread.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "consumer/core/judge.hpp"

namespace outbox {

/// Topic, and SHA-256 of source, line feed and key.
using Chain = std::pair<std::string_view, Sha256>;
using ChainSeqs = std::map<Chain, std::int64_t>;

/// nullopt: the message has no key or says no seq, so it has no place in an order; or it was scheduled, so that
/// its place is the moment when it was due, and its seq is lower than its place.
[[nodiscard]] std::optional<Chain> chain_of(const Message& message);

/// Shape: the highest seq of each chain among the messages to apply.
[[nodiscard]] ChainSeqs chain_tops(std::span<const Candidate> batch, std::span<const Judgement> judgements);

/// Turns fresh into stale where a higher seq of the chain was applied: `before` has what the database knew
/// (a chain that is not in it: nothing), and each fresh message of the batch counts for those behind it.
void judge_overtaking(std::span<const Candidate> batch, std::span<Judgement> judgements, ChainSeqs before);

}  // namespace outbox
