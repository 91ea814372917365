#include "consumer/inbox/dead_letters.hpp"

#include "consumer/inbox/revival.hpp"

namespace outbox {

std::vector<Outcome> DeadLetters::retry(int letters_max) {
  std::vector<Outcome> out;
  while (static_cast<int>(out.size()) < letters_max) {
    auto next = retry_one();
    if (!next) break;
    out.push_back(*std::move(next));
  }
  return out;
}

std::optional<Outcome> DeadLetters::retry_one() {
  std::optional<DeadLetter> taken;
  BatchResult result =
      session_.run([&](const InboxContext& inbox) { return Revival(inbox).apply(handler_, taken); });
  if (!taken) return std::nullopt;
  if (const auto* back = std::get_if<RolledBack>(&result)) {
    const Failure failure = back->failure;
    result =
        session_.run([&](const InboxContext& inbox) { return Revival(inbox).write_down(*taken, failure); });
  }
  const auto* done = std::get_if<std::vector<Outcome>>(&result);
  if (!done) return std::nullopt;
  if (tell_) tell_(taken->record, done->front());
  return done->front();
}

}  // namespace outbox
