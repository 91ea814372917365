#include "options/fault.hpp"

namespace outbox::config {

std::string Fault::text(const std::string& file) const {
  std::string out = file;
  if (place.line > 0) out += ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  out += ": ";
  if (!path.empty()) out += path + ": ";
  return out + message;
}

}  // namespace outbox::config
