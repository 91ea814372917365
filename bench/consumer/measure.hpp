#pragma once
// The consumer's measurements: messages a second by each path, over the same ledger and messages. Blocks;
// throws std::runtime_error where a measured run lost or doubled something.

#include <cstdint>

#include "bench/consumer/ledger_stage.hpp"

namespace bench {

inline constexpr int batch_rows = 500;  // as ConsumerOptions has it

/// Numbers of messages, so that no two runs share an id.
struct Numbers {
  std::int64_t next = 1;
};

/// A ledger's two statements for a message: raise the balance, write the entry.
enum class Ledger {
  one_answer,   ///< the balance's answer is waited for and goes into the entry, which is sent
  no_answer,    ///< both are sent
  all_answers,  ///< both are waited for
};

/// One message, one transaction.
[[nodiscard]] double one_by_one_per_s(LedgerStage& stage, Numbers& numbers, int messages, Ledger how);
/// Batches, the same handler for each message.
[[nodiscard]] double batches_per_s(LedgerStage& stage, Numbers& numbers, int messages, Ledger how);
/// Batches, the same work as two statements for the whole span.
[[nodiscard]] double spans_per_s(LedgerStage& stage, Numbers& numbers, int messages);
/// The same statements in transactions of the same size, on a bare connection without any deduplication.
[[nodiscard]] double without_dedup_per_s(LedgerStage& stage, Numbers& numbers, int messages, Ledger how);
/// Milliseconds that claiming a batch takes with no handler's work, the median over `batches` on each of two
/// databases, which take turns, so that the machine's mood meets both.
struct ClaimTimes {
  double small_ms = 0;
  double large_ms = 0;
};
[[nodiscard]] ClaimTimes claim_times(LedgerStage& small, LedgerStage& large, Numbers& numbers, int batches);

}  // namespace bench
