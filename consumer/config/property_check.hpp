#pragma once
// What librdkafka itself says of a property. Pure but for librdkafka's tables; any thread.

#include <optional>
#include <string>

namespace outbox::config {

/// Why librdkafka takes no such property or value, with the name that may have been meant; nullopt: it does.
/// The value is never part of the answer.
[[nodiscard]] std::optional<std::string> property_fault(const std::string& property,
                                                        const std::string& value);

}  // namespace outbox::config
