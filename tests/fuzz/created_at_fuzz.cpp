// Any outbox-created-at whatever: it is a time or it is left out, never a fault of the message; and what was
// read, written again as the relay writes it, is read as the same time.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "consumer/core/envelope.hpp"

namespace {

std::optional<outbox::Message::Time> created_at(std::string_view value) {
  const outbox::Header headers[] = {{"outbox-id", "0193a8c0-1c2d-7000-8000-000000000001"},
                                    {"outbox-created-at", value}};
  const outbox::Record record{.topic = "t", .headers = headers};
  const auto envelope = outbox::read_envelope(record);
  const auto* identity = std::get_if<outbox::Message::Identity>(&envelope);
  if (!identity) std::abort();
  return identity->created_at;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto time = created_at({reinterpret_cast<const char*>(data), size});
  if (!time) return 0;
  if (size < 20 || size > 27) std::abort();
  const std::string again = outbox::rfc3339(*time);
  // The last second of year 9999 may be a leap second, whose next one no longer has four digits of a year.
  if (again.size() == 27 && created_at(again) != time) std::abort();
  return 0;
}
