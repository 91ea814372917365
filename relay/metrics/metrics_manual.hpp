#pragma once
// docs/metrics.md, generated from the table; a test fails when the file is stale.

#include <string>

namespace outbox::relay {

[[nodiscard]] std::string metrics_manual();

}  // namespace outbox::relay
