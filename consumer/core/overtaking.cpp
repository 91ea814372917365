#include "consumer/core/overtaking.hpp"

#include <algorithm>

namespace outbox {

std::optional<Chain> chain_of(const Message& message) {
  if (!message.key() || !message.seq() || message.header("outbox-due-at")) return std::nullopt;
  return Chain{message.topic(), sha256(std::string(message.source()).append("\n").append(*message.key()))};
}

ChainSeqs chain_tops(std::span<const Candidate> batch, std::span<const Judgement> judgements) {
  ChainSeqs out;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!judgements[i].to_apply()) continue;
    const auto chain = chain_of(*batch[i].message);
    if (!chain) continue;
    const std::int64_t seq = *batch[i].message->seq();
    const auto [at, added] = out.emplace(*chain, seq);
    if (!added) at->second = std::max(at->second, seq);
  }
  return out;
}

void judge_overtaking(std::span<const Candidate> batch, std::span<Judgement> judgements, ChainSeqs before) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!judgements[i].to_apply()) continue;
    const auto chain = chain_of(*batch[i].message);
    if (!chain) continue;
    const std::int64_t seq = *batch[i].message->seq();
    const auto [at, added] = before.emplace(*chain, seq);
    if (!added && seq < at->second)
      judgements[i] = {.verdict = Verdict::stale, .overtook = at->second};
    else
      at->second = seq;
  }
}

}  // namespace outbox
