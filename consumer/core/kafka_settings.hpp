#pragma once
// The librdkafka properties of a consumer for money: what the library sets, what a service may change, and
// what it may not. Pure; any thread.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outbox {

/// A property that would break the promise, or is missing.
struct RefusedProperty {
  std::string property;
  std::string why;  ///< the rest of a sentence: "refused, since …"
};

struct KafkaSettings {
  std::map<std::string, std::string> properties;  ///< complete
  std::vector<RefusedProperty> refused;
};

/// Shape: `given` over the library's defaults, plus what the promise rests on. group.id and client.id come
/// from `name` where they are not given.
[[nodiscard]] KafkaSettings kafka_settings(const std::map<std::string, std::string>& given,
                                           const std::string& name);

struct FixedProperty {
  std::string_view property;
  std::string_view value;  ///< empty: it must not be given at all
  std::string_view why;
};
/// What a service can't change.
[[nodiscard]] std::span<const FixedProperty> fixed_properties();

struct DefaultProperty {
  std::string_view property;
  std::string_view value;
};
/// What the library sets unless the service does.
[[nodiscard]] std::span<const DefaultProperty> default_properties();

/// Whether its value is a password or a key, which must not be shown.
[[nodiscard]] bool secret_property(std::string_view property);

}  // namespace outbox
