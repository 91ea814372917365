#include "consumer/inbox/handler_run.hpp"

#include <exception>
#include <stdexcept>
#include <string>

namespace outbox {
namespace {

using State = HandlerTransaction::State;

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

}  // namespace

std::optional<HandlerFailure> run_handler(HandlerTransaction& tx, const HandlerCall& handler,
                                          std::span<const Message> messages, std::size_t first) {
  tx.begin(first);
  std::exception_ptr thrown;
  try {
    handler(tx, messages);
  } catch (...) {
    thrown = std::current_exception();
    tx.receive();  // what was sent before may be the cause
  }
  if (tx.needs_solitude())  // whatever the handler made of being told so
    return HandlerFailure{{Failure::Kind::alone, "it needs a transaction of its own"}, first};
  if (const auto& sent = tx.sent_failure()) {
    if (thrown && sent->error && sent->message == first)
      return HandlerFailure{failure_of(thrown, sent->error), first};
    return HandlerFailure{sent->failure, sent->message};
  }
  const State state = tx.state();
  if (state == State::ended) ended_by_handler(messages.front());
  if (state == State::usable && !thrown) {
    tx.end();
    return std::nullopt;
  }
  std::optional<Error> breaking;
  if (state == State::lost) breaking = connection_lost();
  if (state == State::unfit) breaking = left_unfit();
  if (state == State::failed) breaking = tx.first_error() ? tx.first_error() : unreported();
  return HandlerFailure{thrown ? failure_of(thrown, breaking) : failure_of(*breaking), first};
}

std::optional<HandlerFailure> finish_handlers(HandlerTransaction& tx) {
  const auto& sent = tx.receive();
  if (!sent) return std::nullopt;
  return HandlerFailure{sent->failure, sent->message};
}

}  // namespace outbox
