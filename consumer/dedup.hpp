#pragma once
// The consumer's two tables, as statements inside a transaction that the caller opened.

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "consumer/core/judge.hpp"
#include "consumer/statements.hpp"
#include "pg/session.hpp"

namespace outbox {

enum class ProcessedState { applied, dead };

class Dedup {
 public:
  Dedup(pg::Session& session, const Statements& statements, std::string_view consumer)
      : session_(session), statements_(statements), consumer_(consumer) {}

  /// Inserts the rows of every id in the batch, then looks up, in a second statement, those that were there.
  /// Blocks: while another transaction is inserting one of the ids.
  [[nodiscard]] Result<Findings> claim(std::span<const Candidate> batch, ProcessedState state);

  /// Keeps a message in dead_msgs; a repeat changes nothing.
  [[nodiscard]] Status bury(const Candidate& candidate, std::string_view verdict, std::string_view reason);

 private:
  [[nodiscard]] Status look_up(std::span<const Candidate* const> candidates, Findings& findings);

  pg::Session& session_;
  const Statements& statements_;
  std::string_view consumer_;
};

}  // namespace outbox
