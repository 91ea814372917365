#pragma once
// One call of a service's handler, judged by what it threw and by what it left behind.

#include <optional>
#include <span>

#include "consumer/core/failure.hpp"
#include "consumer/handler_call.hpp"
#include "consumer/handler_transaction.hpp"

namespace outbox {

/// Shape: nullopt: the message is done and the transaction is fit to be committed.
/// Errors: std::logic_error: the handler ended the transaction itself behind the library's back, so that
/// messages of its batch may count as done that never were; a person must look.
[[nodiscard]] std::optional<Failure> run_handler(HandlerTransaction& tx, const HandlerCall& handler,
                                                 std::span<const Message> messages);

}  // namespace outbox
