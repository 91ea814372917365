#include "options/fault.hpp"

namespace outbox::config {
namespace {

// What a file holds can neither start a line nor move a terminal's cursor.
std::string on_one_line(const std::string& text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      out += c;
    else
      out.append("\\x").append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
  }
  return out;
}

}  // namespace

std::string Fault::text(const std::string& file) const {
  std::string out = file;
  if (place.line > 0) out += ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  out += ": ";
  if (!path.empty()) out += path + ": ";
  return on_one_line(out + message);
}

}  // namespace outbox::config
