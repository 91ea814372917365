#include "consumer/inbox/batch_transaction.hpp"

#include <map>
#include <utility>

#include "base/crash_point.hpp"
#include "consumer/inbox/handler_run.hpp"

namespace outbox {
namespace {

constexpr const char* parked_reason = "its key is parked behind an earlier message";
constexpr const char* unseen = "an id was neither inserted nor found: its row came or went meanwhile";

std::string conflict_reason(const Candidate& candidate, const Judgement& judgement) {
  return "same id, other payload: known sha256 " + hex(*judgement.known) + ", received sha256 " +
         hex(candidate.payload);
}

std::string dead_reason(const Candidate& candidate, const Judgement& judgement) {
  if (judgement.verdict == Verdict::conflict) return conflict_reason(candidate, judgement);
  if (judgement.verdict == Verdict::expired)
    return "its id is older than what is remembered here: whether it was applied can't be told";
  return candidate.malformed;
}

RolledBack blame(const HandlerFailure& failed, const HandlerCall& handler) {
  if (handler.takes_spans()) return {failed.failure, std::nullopt, true};
  return {failed.failure, failed.message, true};
}

std::string stale_reason(const Judgement& judgement) {
  return "a later message of its key was applied: outbox-seq " + std::to_string(*judgement.overtook);
}

}  // namespace

/// nullopt within: an id was neither inserted nor found.
Result<std::optional<std::vector<Judgement>>> BatchTransaction::judge_batch(std::span<const Candidate> batch,
                                                                            ProcessedState state) {
  const auto findings = dedup_.claim(batch, state);
  if (!findings) return failure(findings.error());
  auto judgements = judge(batch, *findings);
  if (!judgements) return judgements;
  if (findings->keys_may_be_parked)
    if (const Status locked = guard_parked(batch, *judgements); !locked) return failure(locked.error());
  if (inbox_.guard == Guard::by_seq && state == ProcessedState::applied)
    if (const Status guarded = guard_order(batch, *judgements); !guarded) return failure(guarded.error());
  return judgements;
}

Status BatchTransaction::guard_parked(std::span<const Candidate> batch, std::vector<Judgement>& judgements) {
  const auto parked = dedup_.lock_parked(fresh_keys(batch, judgements));
  if (!parked) return failure(parked.error());
  judge_parked(batch, judgements, *parked);
  return {};
}

Status BatchTransaction::guard_order(std::span<const Candidate> batch, std::vector<Judgement>& judgements) {
  const auto before = dedup_.advance_seqs(chain_tops(batch, judgements));
  if (!before) return failure(before.error());
  judge_overtaking(batch, judgements, *before);
  return {};
}

/// What is not to be applied.
Status BatchTransaction::settle(const Candidate& candidate, const Judgement& judgement, Outcome& outcome) {
  outcome = {.fate = Fate::skipped, .verdict = judgement.verdict};
  if (judgement.verdict == Verdict::duplicate) return {};
  if (judgement.verdict == Verdict::stale) {
    outcome.reason = stale_reason(judgement);
    return dedup_.set_state(candidate, ProcessedState::discarded);
  }
  if (judgement.parked) {
    outcome = {.fate = Fate::parked, .verdict = judgement.verdict, .reason = parked_reason};
    return dedup_.set_state(candidate, ProcessedState::parked).and_then([&] {
      return dedup_.bury(candidate, {"parked", outcome.reason, Queue::of_its_key});
    });
  }
  outcome.fate = Fate::dead;
  outcome.reason = dead_reason(candidate, judgement);
  return dedup_.bury(candidate, {to_string(judgement.verdict), outcome.reason, Queue::none}).and_then([&] {
    if (judgement.verdict != Verdict::expired) return Status{};
    return dedup_.set_state(candidate, ProcessedState::dead);
  });
}

BatchResult BatchTransaction::apply(std::span<const Candidate> batch, const HandlerCall& handler) {
  const auto company = batch.size() == 1 || handler.takes_spans() ? Company::alone : Company::shared;
  HandlerTransaction tx(inbox_.session, inbox_.statements, inbox_.consumer, inbox_.body_type, company);
  BatchResult result = in_transaction(inbox_.session, inbox_.statements, [&]() -> BatchResult {
    const auto judgements = judge_batch(batch, ProcessedState::applied);
    if (!judgements) return not_ours(judgements.error());
    if (!*judgements) return RolledBack{{Failure::Kind::transient, unseen}, std::nullopt};
    crash_here(CrashPoint::consumer_after_claim);
    return with_offsets(batch, apply_fresh(batch, **judgements, tx, handler));
  });
  if (std::holds_alternative<std::vector<Outcome>>(result)) tx.run_after_commit();
  return result;
}

BatchResult BatchTransaction::apply_fresh(std::span<const Candidate> batch,
                                          std::span<const Judgement> judgements, HandlerTransaction& tx,
                                          const HandlerCall& handler) {
  BatchResult result = handler.takes_spans() ? apply_as_span(batch, judgements, tx, handler)
                                             : apply_each(batch, judgements, tx, handler);
  const auto failed = finish_handlers(tx);
  if (!failed || std::holds_alternative<RolledBack>(result)) return result;
  return blame(*failed, handler);
}

BatchResult BatchTransaction::apply_each(std::span<const Candidate> batch,
                                         std::span<const Judgement> judgements, HandlerTransaction& tx,
                                         const HandlerCall& handler) {
  std::vector<Outcome> outcomes(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!judgements[i].to_apply()) {
      if (auto failed = finish_handlers(tx)) return blame(*failed, handler);
      if (const Status settled = settle(batch[i], judgements[i], outcomes[i]); !settled)
        return not_ours(settled.error());
      continue;
    }
    if (auto failed = run_handler(tx, handler, {&*batch[i].message, 1}, i)) return blame(*failed, handler);
    outcomes[i] = {.fate = Fate::applied};
  }
  return outcomes;
}

BatchResult BatchTransaction::apply_as_span(std::span<const Candidate> batch,
                                            std::span<const Judgement> judgements, HandlerTransaction& tx,
                                            const HandlerCall& handler) {
  std::vector<Outcome> outcomes(batch.size());
  std::vector<Message> fresh;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (judgements[i].to_apply()) {
      fresh.push_back(*batch[i].message);
      outcomes[i] = {.fate = Fate::applied};
    } else if (const Status settled = settle(batch[i], judgements[i], outcomes[i]); !settled) {
      return not_ours(settled.error());
    }
  }
  if (fresh.empty()) return outcomes;
  if (auto failed = run_handler(tx, handler, fresh, 0)) return blame(*failed, handler);
  return outcomes;
}

BatchResult BatchTransaction::end(const Candidate& candidate, const Ending& ending) {
  return in_transaction(inbox_.session, inbox_.statements, [&]() -> BatchResult {
    const auto judgements = judge_batch({&candidate, 1}, ending.state);
    if (!judgements) return not_ours(judgements.error());
    if (!*judgements) return RolledBack{{Failure::Kind::transient, unseen}, std::nullopt};
    std::vector<Outcome> outcomes(1);
    const Judgement& judgement = (*judgements)->front();
    const Status done = judgement.to_apply() ? end_fresh(candidate, ending, outcomes[0])
                                             : settle(candidate, judgement, outcomes[0]);
    if (!done) return not_ours(done.error());
    return with_offsets({&candidate, 1}, outcomes);
  });
}

/// Last in the transaction, so that a member that froze in it holds up nobody's claim.
BatchResult BatchTransaction::with_offsets(std::span<const Candidate> batch, BatchResult result) {
  if (std::holds_alternative<RolledBack>(result)) return result;
  std::map<std::pair<std::string_view, std::int32_t>, const Record*> last;
  for (const auto& candidate : batch)
    if (const Record& record = *candidate.record; record.epoch > 0)
      last[{record.topic, record.partition}] = &record;
  for (const auto& [partition, record] : last) {
    const auto moved = dedup_.move_offset(*record);
    if (!moved) return not_ours(moved.error());
    if (!*moved)
      return RolledBack{{Failure::Kind::fenced, "another member has claimed " + std::string(record->topic) +
                                                    "-" + std::to_string(record->partition)},
                        std::nullopt};
  }
  return result;
}

Status BatchTransaction::end_fresh(const Candidate& candidate, const Ending& ending, Outcome& outcome) {
  if (ending.state == ProcessedState::discarded) {
    outcome = {.fate = Fate::skipped, .verdict = Verdict::stale, .reason = std::string(ending.reason)};
    return {};
  }
  outcome = {.fate = Fate::dead, .reason = std::string(ending.reason)};
  const bool parks = ending.state == ProcessedState::parked;
  Status parked = parks ? dedup_.park_key(candidate) : Status{};
  if (!parked) return parked;
  return dedup_.bury(candidate, {ending.verdict, ending.reason, parks ? Queue::of_its_key : Queue::none});
}

}  // namespace outbox
