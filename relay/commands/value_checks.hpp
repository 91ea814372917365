#pragma once
// Faults of a configuration that only the users of its values can see.

#include "relay/config/load.hpp"

namespace outbox::commands {

/// Shape: table names by pg, URIs by libpq, properties by librdkafka, each with the place of the option. No
/// network.
[[nodiscard]] config::Faults value_faults(const config::Loaded& loaded);

}  // namespace outbox::commands
