#include "base/error.hpp"

namespace outbox {

std::string_view to_string(Disposition d) noexcept {
  switch (d) {
    case Disposition::retry:
      return "retry";
    case Disposition::reconnect:
      return "reconnect";
    case Disposition::in_doubt:
      return "in_doubt";
    case Disposition::quarantine:
      return "quarantine";
    case Disposition::fatal:
      return "fatal";
  }
  return "unknown";
}

std::string Error::text() const {
  std::string out = message;
  if (!code.empty()) out.append(" (").append(code).append(")");
  if (!advice.empty()) out.append("; ").append(advice);
  return out;
}

}  // namespace outbox
