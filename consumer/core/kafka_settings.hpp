#pragma once
// The librdkafka properties of a consumer for money: what the library sets, what a service may change, and
// what it may not. Pure; any thread.

#include <map>
#include <string>
#include <vector>

namespace outbox {

struct KafkaSettings {
  std::map<std::string, std::string> properties;  ///< complete
  std::vector<std::string> refused;  ///< for people, one for each property that would break the promise
};

/// Shape: `given` over the library's defaults, plus what the promise rests on. group.id and client.id come
/// from `name` where they are not given.
[[nodiscard]] KafkaSettings kafka_settings(const std::map<std::string, std::string>& given,
                                           const std::string& name);

}  // namespace outbox
