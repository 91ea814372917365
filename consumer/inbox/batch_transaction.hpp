#pragma once
// One database transaction for a batch of records: claim their ids, run the handler for the fresh ones in
// order, bury what can't be applied, pass over what is stale, commit. All of it or nothing.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "consumer/core/failure.hpp"
#include "consumer/core/judge.hpp"
#include "consumer/inbox/dedup.hpp"
#include "consumer/inbox/handler_call.hpp"
#include "consumer/inbox/handler_transaction.hpp"
#include "consumer/inbox/statements.hpp"
#include "consumer/inbox/whole_transaction.hpp"
#include "pg/session.hpp"

namespace outbox {

/// How a message that its handler won't take ends.
struct Ending {
  ProcessedState state = ProcessedState::dead;  ///< parked: its key is parked with it
  std::string_view verdict;                     ///< for dead_msgs
  std::string_view reason;
};

class BatchTransaction {
 public:
  explicit BatchTransaction(const InboxContext& inbox)
      : inbox_(inbox), dedup_(inbox.session, inbox.statements, inbox.consumer) {}

  /// Errors: std::logic_error: a handler ended the transaction itself behind the library's back, so that
  /// messages of the batch may count as done that never were; a person must look.
  [[nodiscard]] BatchResult apply(std::span<const Candidate> batch, const HandlerCall& handler);

  /// A message whose handler won't take it: its dedup row and, unless it is discarded as stale, its place in
  /// dead_msgs, together. Where another copy was applied meanwhile it is judged by that one instead.
  [[nodiscard]] BatchResult end(const Candidate& candidate, const Ending& ending);

 private:
  Result<std::optional<std::vector<Judgement>>> judge_batch(std::span<const Candidate> batch,
                                                            ProcessedState state);
  Status guard_parked(std::span<const Candidate> batch, std::vector<Judgement>& judgements);
  Status guard_order(std::span<const Candidate> batch, std::vector<Judgement>& judgements);
  BatchResult apply_fresh(std::span<const Candidate> batch, std::span<const Judgement> judgements,
                          HandlerTransaction& tx, const HandlerCall& handler);
  BatchResult apply_each(std::span<const Candidate> batch, std::span<const Judgement> judgements,
                         HandlerTransaction& tx, const HandlerCall& handler);
  BatchResult apply_as_span(std::span<const Candidate> batch, std::span<const Judgement> judgements,
                            HandlerTransaction& tx, const HandlerCall& handler);
  BatchResult with_offsets(std::span<const Candidate> batch, BatchResult result);
  Status settle(const Candidate& candidate, const Judgement& judgement, Outcome& outcome);
  Status end_fresh(const Candidate& candidate, const Ending& ending, Outcome& outcome);

  InboxContext inbox_;
  Dedup dedup_;
};

}  // namespace outbox
