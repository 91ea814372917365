#pragma once
// What went wrong, and what the caller does next. An Error is classed by its disposition (what it ruins),
// never by the library it came from; the two tables that class foreign codes are pg/sqlstate.hpp and
// relay/core/kafka/errors.hpp.

#include <string>
#include <string_view>

namespace outbox {

enum class Disposition {
  retry,      ///< the same call may succeed later: wait (backoff) and repeat the whole transaction or request
  reconnect,  ///< the connection is gone and nothing of the call took effect: connect again, then retry
  in_doubt,   ///< sent, and the reply was lost: it may have taken effect; re-read, never guess
  quarantine,  ///< this one message, row or topic can't go on; the others can
  fatal,       ///< configuration, privilege or programming error: repeating it can't help
};

[[nodiscard]] std::string_view to_string(Disposition d) noexcept;

struct Error {
  Disposition disposition = Disposition::fatal;
  std::string code;  ///< SQLSTATE ("40001"), librdkafka name ("MSG_SIZE_TOO_LARGE") or "" where there is none
  std::string message;  ///< one line for people: what failed, with which values
  std::string advice;   ///< what to do, or which option changes it; may be empty

  /// "message (code); advice", on one line.
  [[nodiscard]] std::string text() const;
};

}  // namespace outbox
