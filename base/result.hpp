#pragma once
// Result<T> is how everything that can fail answers. An expected outcome (no rows, a duplicate) is a value,
// not an Error.

#include <tl/expected.hpp>

#include <string>
#include <utility>

#include "base/error.hpp"

namespace outbox {

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline tl::unexpected<Error> failure(Disposition disposition, std::string message,
                                                   std::string code = {}, std::string advice = {}) {
  return tl::unexpected<Error>(Error{disposition, std::move(code), std::move(message), std::move(advice)});
}
[[nodiscard]] inline tl::unexpected<Error> failure(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace outbox
