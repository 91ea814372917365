#pragma once
// One call of Inbox::process(): every record of a batch gets its outcome. The whole batch is tried as one
// transaction; where a handler fails, those before it are done as one, it alone, those behind it as one. A
// failure that names nobody (a deferred constraint at the COMMIT) halves the batch instead, until it does.

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "consumer/inbox/batch_transaction.hpp"
#include "consumer/inbox/handler_call.hpp"
#include "consumer/inbox/inbox_session.hpp"

namespace outbox {

struct FailurePolicy {
  int attempts_max = 10;
  AfterAttempts after_attempts = AfterAttempts::park_key;
  Millis environment_patience{0};
};

class Settlement {
 public:
  Settlement(InboxSession& session, FailurePolicy policy, const HandlerCall& handler,
             std::span<const Record> records);
  [[nodiscard]] std::vector<Outcome> run();

 private:
  // Each takes candidates [first, last).
  void settle(std::size_t first, std::size_t last);
  void settle_run(std::size_t first, std::size_t last);
  void leave(std::size_t first, std::size_t last, const Failure& failure);
  void settle_failed(std::size_t i, Failure failure);
  void end(std::size_t i, const Failure& failure);
  [[nodiscard]] ProcessedState end_state(std::size_t i, const Failure& failure) const;
  [[nodiscard]] bool blocked(std::size_t i) const;

  InboxSession& session_;
  FailurePolicy policy_;
  const HandlerCall& handler_;
  std::vector<Candidate> candidates_;
  std::vector<Outcome> outcomes_;
  std::set<std::pair<std::string_view, std::int32_t>> blocked_;  // partitions whose order forbids going on
  std::optional<Failure> away_;  // set: the database can't do its part now, so the rest waits
};

}  // namespace outbox
