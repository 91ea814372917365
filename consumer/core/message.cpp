#include "outbox/message.hpp"

namespace outbox {

std::optional<std::string_view> Message::header(std::string_view name) const {
  std::optional<std::string_view> value;
  for (const auto& header : record_.headers)
    if (header.name == name) value = header.value;
  return value;
}

}  // namespace outbox
