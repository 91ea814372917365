#include "consumer/handler_run.hpp"

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

std::optional<Failure> run_handler(HandlerTransaction& tx, const HandlerCall& handler,
                                   std::span<const Message> messages) {
  std::exception_ptr thrown;
  try {
    handler(tx, messages);
  } catch (...) {
    thrown = std::current_exception();
  }
  const State state = tx.state();
  if (state == State::ended) ended_by_handler(messages.front());
  if (state == State::usable && !thrown) return std::nullopt;
  std::optional<Error> breaking;
  if (state == State::lost) breaking = connection_lost();
  if (state == State::unfit) breaking = left_unfit();
  if (state == State::failed) breaking = tx.first_error() ? tx.first_error() : unreported();
  return thrown ? failure_of(thrown, breaking) : failure_of(*breaking);
}

}  // namespace outbox
