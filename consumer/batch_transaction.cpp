#include "consumer/batch_transaction.hpp"

#include <libpq-fe.h>

#include "consumer/dedup.hpp"
#include "consumer/handler_transaction.hpp"

namespace outbox {
namespace {

using State = HandlerTransaction::State;

constexpr const char* unseen = "an id was neither inserted nor found: its row came or went meanwhile";

/// What fails outside a handler is nobody's fault, so that no message is ever buried for it.
RolledBack not_ours(const Error& error) {
  Failure failure = failure_of(error);
  if (failure.kind == Failure::Kind::message) failure.kind = Failure::Kind::environment;
  return {std::move(failure), std::nullopt};
}

Error unreported() {
  return {Disposition::quarantine, "", "a statement of the handler failed, and it went on", ""};
}
Error connection_lost() {
  return {Disposition::reconnect, "", "the connection was lost in the handler", ""};
}
Error left_unfit() {
  return {Disposition::quarantine, "", "the handler left the connection busy or in pipeline mode", ""};
}

[[noreturn]] void ended_by_handler(const Message& message) {
  throw std::logic_error("the handler committed or rolled back the library's transaction itself, at " +
                         std::string(message.topic()) + "-" + std::to_string(message.partition()) +
                         " offset " + std::to_string(message.offset()) +
                         ": messages of its batch may be lost; compare " +
                         "processed_msgs with what the handler wrote");
}

std::optional<Failure> run_handler(HandlerTransaction& tx, const Handler& handler, const Message& message) {
  std::exception_ptr thrown;
  try {
    handler(tx, message);
  } catch (...) {
    thrown = std::current_exception();
  }
  const State state = tx.state();
  if (state == State::ended) ended_by_handler(message);
  if (state == State::usable && !thrown) return std::nullopt;
  std::optional<Error> breaking;
  if (state == State::lost) breaking = connection_lost();
  if (state == State::unfit) breaking = left_unfit();
  if (state == State::failed) breaking = tx.first_error() ? tx.first_error() : unreported();
  return thrown ? failure_of(thrown, breaking) : failure_of(*breaking);
}

std::string conflict_reason(const Candidate& candidate, const Judgement& judgement) {
  return "same id, other payload: known sha256 " + hex(*judgement.known) + ", received sha256 " +
         hex(candidate.payload);
}

Status commit(pg::Session& session) {
  const auto done = session.exec("COMMIT");
  if (!done) return failure(done.error());
  // PostgreSQL answers a COMMIT of a broken transaction with ROLLBACK and no error.
  if (std::string_view(PQcmdStatus(const_cast<pg_result*>(done->native()))) == "COMMIT") return {};
  return failure(Disposition::quarantine, "the transaction was rolled back at its COMMIT");
}

}  // namespace

template <class Work>
BatchResult BatchTransaction::in_transaction(Work work) {
  struct RollbackAtExit {
    pg::Session& session;
    ~RollbackAtExit() {
      if (!session.broken() && session.in_transaction()) static_cast<void>(session.exec("ROLLBACK"));
    }
  } const at_exit{session_};
  if (const Status begun = session_.exec_script(statements_.begin); !begun) return not_ours(begun.error());
  Body body = work();
  if (std::holds_alternative<RolledBack>(body)) return body;
  // A deferred constraint speaks only now, and does not say which message it means.
  if (const Status committed = commit(session_); !committed)
    return RolledBack{failure_of(committed.error()), std::nullopt};
  return body;
}

std::optional<RolledBack> BatchTransaction::settle(const Candidate& candidate, const Judgement& judgement,
                                                   Outcome& outcome) {
  outcome = {Fate::skipped, judgement.verdict, {}};
  if (judgement.verdict == Verdict::duplicate) return std::nullopt;
  outcome.fate = Fate::dead;
  outcome.reason =
      judgement.verdict == Verdict::conflict ? conflict_reason(candidate, judgement) : candidate.malformed;
  Dedup dedup(session_, statements_, consumer_);
  if (const Status buried = dedup.bury(candidate, to_string(judgement.verdict), outcome.reason); !buried)
    return not_ours(buried.error());
  return std::nullopt;
}

BatchResult BatchTransaction::apply(std::span<const Candidate> batch, const Handler& handler) {
  return in_transaction([&]() -> Body {
    const auto findings = Dedup(session_, statements_, consumer_).claim(batch, ProcessedState::applied);
    if (!findings) return not_ours(findings.error());
    const auto judgements = judge(batch, *findings);
    if (!judgements) return RolledBack{{Failure::Kind::transient, unseen}, std::nullopt};
    HandlerTransaction tx(session_, statements_, body_type_);
    std::vector<Outcome> outcomes(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if ((*judgements)[i].verdict != Verdict::fresh) {
        if (auto failed = settle(batch[i], (*judgements)[i], outcomes[i])) return *std::move(failed);
        continue;
      }
      tx.forget_error();
      if (auto failed = run_handler(tx, handler, *batch[i].message)) return RolledBack{*std::move(failed), i};
      outcomes[i] = {Fate::applied, Verdict::fresh, {}};
    }
    return outcomes;
  });
}

BatchResult BatchTransaction::bury(const Candidate& candidate, std::string_view verdict,
                                   std::string_view reason) {
  return in_transaction([&]() -> Body {
    Dedup dedup(session_, statements_, consumer_);
    const auto findings = dedup.claim({&candidate, 1}, ProcessedState::dead);
    if (!findings) return not_ours(findings.error());
    const auto judgements = judge({&candidate, 1}, *findings);
    if (!judgements) return RolledBack{{Failure::Kind::transient, unseen}, std::nullopt};
    std::vector<Outcome> outcomes(1);
    if (judgements->front().verdict != Verdict::fresh) {
      if (auto failed = settle(candidate, judgements->front(), outcomes[0])) return *std::move(failed);
      return outcomes;
    }
    if (const Status buried = dedup.bury(candidate, verdict, reason); !buried)
      return not_ours(buried.error());
    outcomes[0] = {Fate::dead, Verdict::fresh, std::string(reason)};
    return outcomes;
  });
}

}  // namespace outbox
