#pragma once
// The consumer's two tables, as statements inside a transaction that the caller opened.

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "consumer/core/judge.hpp"
#include "consumer/core/overtaking.hpp"
#include "consumer/inbox/statements.hpp"
#include "pg/session.hpp"

namespace outbox {

/// What processed_msgs says of a message.
enum class ProcessedState { applied, parked, dead, discarded };
[[nodiscard]] std::string_view to_string(ProcessedState state) noexcept;

/// Whether a dead message waits in its key's queue.
enum class Queue { none, of_its_key };

/// What dead_msgs says of a message, beside its bytes.
struct Epitaph {
  std::string_view verdict;
  std::string_view error;
  Queue queue = Queue::none;
};

class Dedup {
 public:
  Dedup(pg::Session& session, const Statements& statements, std::string_view consumer)
      : session_(session), statements_(statements), consumer_(consumer) {}

  /// Inserts the rows of every id in the batch, then looks up, in a second statement, those that were there,
  /// and whether those that were not may have been forgotten.
  /// Blocks: while another transaction is inserting one of the ids.
  [[nodiscard]] Result<Findings> claim(std::span<const Candidate> batch, ProcessedState state);

  /// Changes the state of a row that claim() inserted.
  [[nodiscard]] Status set_state(const Candidate& candidate, ProcessedState state);

  /// Which of the keys are parked; those can't be let go before the transaction ends.
  /// Blocks: while a retry of one of them, or another batch that meets it, is at work.
  [[nodiscard]] Result<std::set<ParkedKey>> lock_parked(const std::set<ParkedKey>& keys);
  /// Parks the candidate's key, which it must have.
  [[nodiscard]] Status park_key(const Candidate& candidate);

  /// Raises each chain to its seq; answers what each was before, where there was something.
  /// Blocks: while another transaction has raised one of them.
  [[nodiscard]] Result<ChainSeqs> advance_seqs(const ChainSeqs& tops);

  /// Moves the offset of the record's partition behind it; false: it was claimed under another epoch.
  [[nodiscard]] Result<bool> move_offset(const Record& record);

  /// Keeps a message in dead_msgs; a repeat changes nothing.
  [[nodiscard]] Status bury(const Candidate& candidate, const Epitaph& epitaph);

 private:
  [[nodiscard]] Status look_up(std::span<const Uuid> ids, Findings& findings);

  pg::Session& session_;
  const Statements& statements_;
  std::string_view consumer_;
};

}  // namespace outbox
