#pragma once
// Inbox::retry_dead(): one dead message after the other that somebody wants applied after all, each with the
// transactions of a Revival.

#include <functional>
#include <optional>
#include <vector>

#include "consumer/inbox/handler_call.hpp"
#include "consumer/inbox/inbox_session.hpp"

namespace outbox {

class DeadLetters {
 public:
  using Tell = std::function<void(const Record&, const Outcome&)>;
  DeadLetters(InboxSession& session, const HandlerCall& handler, const Tell& tell)
      : session_(session), handler_(handler), tell_(tell) {}

  /// Until nothing is wanted, `letters_max` were taken, or the database can't do its part.
  [[nodiscard]] std::vector<Outcome> retry(int letters_max);

 private:
  /// nullopt: nothing to do, now.
  [[nodiscard]] std::optional<Outcome> retry_one();

  InboxSession& session_;
  const HandlerCall& handler_;
  const Tell& tell_;
};

}  // namespace outbox
