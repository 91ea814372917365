#pragma once
// One database transaction for a batch of records: claim their ids, run the handler for the fresh ones in
// order, bury conflicts and malformed ones, commit. All of it or nothing.

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "consumer/core/failure.hpp"
#include "consumer/core/judge.hpp"
#include "consumer/statements.hpp"
#include "outbox/handler.hpp"
#include "pg/session.hpp"

namespace outbox {

/// Nothing was written.
struct RolledBack {
  Failure failure;
  std::optional<std::size_t>
      at;  ///< the candidate whose handler failed; nullopt: not one's (claiming, or the COMMIT)
};
using BatchResult = std::variant<std::vector<Outcome>, RolledBack>;

class BatchTransaction {
 public:
  BatchTransaction(pg::Session& session, const Statements& statements, std::string_view consumer,
                   std::string& body_type)
      : session_(session), statements_(statements), consumer_(consumer), body_type_(body_type) {}

  /// Errors: std::logic_error: a handler ended the transaction itself behind the library's back, so that
  /// messages of the batch may count as done that never were; a person must look.
  [[nodiscard]] BatchResult apply(std::span<const Candidate> batch, const Handler& handler);

  /// A message whose handler won't take it: its dedup row (dead) and its place in dead_msgs, together. Where
  /// another copy was applied meanwhile it is judged by that one instead.
  [[nodiscard]] BatchResult bury(const Candidate& candidate, std::string_view verdict,
                                 std::string_view reason);

 private:
  using Body = std::variant<std::vector<Outcome>, RolledBack>;
  template <class Work>
  BatchResult in_transaction(Work work);
  std::optional<RolledBack> settle(const Candidate& candidate, const Judgement& judgement, Outcome& outcome);

  pg::Session& session_;
  const Statements& statements_;
  std::string_view consumer_;
  std::string& body_type_;
};

}  // namespace outbox
