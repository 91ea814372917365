#pragma once
// A service's handler of either kind, as the library calls it. Refers to the service's function, which must
// outlive it.

#include <span>

#include "outbox/handler.hpp"

namespace outbox {

class HandlerCall {
 public:
  explicit HandlerCall(const Handler& each) : each_(&each) {}
  explicit HandlerCall(const SpanHandler& all) : all_(&all) {}

  [[nodiscard]] bool takes_spans() const { return all_ != nullptr; }
  /// Of the kind that takes one message, exactly one.
  void operator()(Transaction& tx, std::span<const Message> messages) const {
    all_ ? (*all_)(tx, messages) : (*each_)(tx, messages.front());
  }

 private:
  const Handler* each_ = nullptr;
  const SpanHandler* all_ = nullptr;
};

}  // namespace outbox
