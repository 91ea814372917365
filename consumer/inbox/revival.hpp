#pragma once
// One database transaction for one dead message that somebody wants applied after all: take it (its key's row
// stays locked till the end), change its dedup row, run the handler, resolve it; or, in another, write down
// what it failed of. Lives for one message. Source: the functions inbox_dead_… in sql/migrations.

#include <cstdint>
#include <optional>
#include <vector>

#include "consumer/core/judge.hpp"
#include "consumer/inbox/dedup.hpp"
#include "consumer/inbox/handler_call.hpp"
#include "consumer/inbox/whole_transaction.hpp"
#include "pg/rows.hpp"

namespace outbox {

/// A dead message as a record again, and the memory behind it.
struct DeadLetter {
  std::int64_t id = 0;
  Uuid msg_id{};
  Record record{};
  pg::Rows row{};
  pg::Rows header_rows{};
  std::vector<Header> headers{};
};

class Revival {
 public:
  explicit Revival(const InboxContext& inbox) : inbox_(inbox) {}

  /// Shape: one outcome, or none where nothing is wanted. `taken`: what was taken, also where it was rolled
  /// back. Errors: std::logic_error, as run_handler().
  [[nodiscard]] BatchResult apply(const HandlerCall& handler, std::optional<DeadLetter>& taken);

  /// After apply() was rolled back with `letter` taken. Retry, and what is not the message's fault: it is taken
  /// again later, behind the others; Stale: it is discarded; anything else: it waits for a person.
  [[nodiscard]] BatchResult write_down(const DeadLetter& letter, const Failure& failure);

 private:
  Result<std::optional<DeadLetter>> take();
  Status read_headers(DeadLetter& letter);
  /// False: its dedup row says that it is not dead any more.
  Result<bool> change_state(const DeadLetter& letter, ProcessedState state);
  Result<bool> overtaken(const Candidate& candidate);
  Status call(const std::string& statement, std::int64_t id, std::string_view text);
  Status resolve(const DeadLetter& letter, std::string_view how) {
    return call(inbox_.statements.dead_done, letter.id, how);
  }

  InboxContext inbox_;
};

}  // namespace outbox
