#pragma once
// Which librdkafka properties an operator cannot set, because the relay's promise hangs on them, and why. One
// pure table; everything it does not name passes through to librdkafka, which judges names and values itself.

#include <optional>
#include <span>
#include <string_view>

namespace outbox::relay {

struct GuardedProperty {
  std::string_view name;  ///< as librdkafka spells it; its aliases have rows of their own
  std::string_view
      allowed;  ///< the values that keep the promise, "all|-1" or "1..1000000"; empty: none, leave it out
  std::string_view reason;  ///< for people
};

/// For the documentation: the whole table, ordered as it is shown.
[[nodiscard]] std::span<const GuardedProperty> guarded_properties();

/// Why `property: value` cannot be set; nullopt: it can. Source: librdkafka's CONFIGURATION.md.
[[nodiscard]] std::optional<std::string_view> refused_because(std::string_view property,
                                                              std::string_view value);

/// Whether its value is a secret: masked where shown, and readable from a file.
[[nodiscard]] bool secret_property(std::string_view property);

/// Whether it says who the relay is or whom it trusts, at the same cluster: a running relay takes another
/// value.
[[nodiscard]] bool credential_property(std::string_view property);
/// Whether that is the name of a file, whose content may change under the same name.
[[nodiscard]] bool credential_file_property(std::string_view property);

}  // namespace outbox::relay
