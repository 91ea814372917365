#include "consumer/core/judge.hpp"

#include <algorithm>

#include "consumer/core/envelope.hpp"

namespace outbox {

Candidate read_candidate(const Record& record, const IdOf& id_of) {
  Candidate out;
  out.record = &record;
  out.payload = payload_sha256(record.body);
  auto envelope = read_envelope(record, id_of);
  if (auto* wrong = std::get_if<Malformed>(&envelope))
    out.malformed = std::move(wrong->reason);
  else
    out.message.emplace(record, std::get<Message::Identity>(envelope));
  return out;
}

Candidate known_candidate(const Record& record, const Uuid& msg_id, const IdOf& id_of) {
  Candidate out;
  out.record = &record;
  out.payload = payload_sha256(record.body);
  const auto envelope = read_envelope(record, id_of);
  const auto* read = std::get_if<Message::Identity>(&envelope);
  auto identity = read ? *read : Message::Identity{};
  identity.msg_id = msg_id;
  out.message.emplace(record, identity);
  return out;
}

std::vector<const Candidate*> to_insert(std::span<const Candidate> batch) {
  std::vector<const Candidate*> out;
  std::unordered_set<Uuid> seen;
  for (const auto& candidate : batch)
    if (candidate.message && seen.insert(candidate.message->msg_id()).second) out.push_back(&candidate);
  std::ranges::sort(out, {}, [](const Candidate* c) { return c->message->msg_id(); });
  return out;
}

std::optional<std::vector<Judgement>> judge(std::span<const Candidate> batch, const Findings& findings) {
  auto known = findings.known;
  std::vector<Judgement> out;
  for (const auto& candidate : batch) {
    if (!candidate.message) {
      out.push_back({.verdict = Verdict::malformed});
      continue;
    }
    const Uuid& id = candidate.message->msg_id();
    if (const auto first = known.find(id); first != known.end()) {
      out.push_back({.verdict = first->second == candidate.payload ? Verdict::duplicate : Verdict::conflict,
                     .known = first->second});
    } else if (findings.inserted.contains(id)) {
      known.emplace(id, candidate.payload);
      out.push_back({.verdict = findings.forgotten.contains(id) ? Verdict::expired : Verdict::fresh});
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<ParkedKey> key_of(const Message& message) {
  if (!message.key()) return std::nullopt;
  return ParkedKey{message.topic(), sha256(*message.key())};
}

std::set<ParkedKey> fresh_keys(std::span<const Candidate> batch, std::span<const Judgement> judgements) {
  std::set<ParkedKey> out;
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (judgements[i].verdict == Verdict::fresh)
      if (auto key = key_of(*batch[i].message)) out.insert(*std::move(key));
  return out;
}

void judge_parked(std::span<const Candidate> batch, std::span<Judgement> judgements,
                  const std::set<ParkedKey>& parked) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (judgements[i].verdict != Verdict::fresh) continue;
    const auto key = key_of(*batch[i].message);
    judgements[i].parked = key && parked.contains(*key);
  }
}

}  // namespace outbox
