#pragma once
// One call of a service's handler, judged by what it threw and by what it left behind.

#include <optional>
#include <span>

#include "consumer/core/failure.hpp"
#include "consumer/inbox/handler_call.hpp"
#include "consumer/inbox/handler_transaction.hpp"

namespace outbox {

struct HandlerFailure {
  Failure failure;
  std::size_t message = 0;  ///< of the batch; where the handler takes spans: any of them may be it
};

/// Calls the handler for the messages from number `first` of the batch on.
/// Shape: nullopt: they are done as far as is known, and the transaction is fit to be committed once
/// finish_handlers() has answered the same. The failing message may be an earlier one.
/// Errors: std::logic_error: the handler ended the transaction itself behind the library's back, so that
/// messages of its batch may count as done that never were; a person must look.
[[nodiscard]] std::optional<HandlerFailure> run_handler(HandlerTransaction& tx, const HandlerCall& handler,
                                                        std::span<const Message> messages, std::size_t first);

/// Waits for what handlers sent. Before anything but a handler uses the session.
[[nodiscard]] std::optional<HandlerFailure> finish_handlers(HandlerTransaction& tx);

}  // namespace outbox
