#include "outbox/foreign_id.hpp"

#include <algorithm>
#include <string>

#include "base/digest.hpp"

namespace outbox {

Uuid foreign_id(std::string_view text) {
  static const Uuid space = parse_uuid(foreign_id_namespace).value();
  std::string named(reinterpret_cast<const char*>(space.bytes.data()), space.bytes.size());
  named.append(text);
  const Sha1 digest = sha1(named);
  Uuid id;
  std::copy_n(digest.begin(), id.bytes.size(), id.bytes.begin());
  id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0f) | 0x50);  // version 5
  id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3f) | 0x80);  // the RFC's variant
  return id;
}

Uuid foreign_id(std::string_view source, std::string_view id) {
  return foreign_id(std::string(source).append("\n").append(id));
}

}  // namespace outbox
