#pragma once
// Where the servers that a test run shares are. Each is named by an environment variable, or by a line
// NAME=value in the file that OUTBOX_TEST_SERVICES names (tests/support/services writes it); the environment
// wins.

#include <optional>
#include <string>
#include <string_view>

namespace outbox::test {

/// `name`: OUTBOX_TEST_POSTGRES or OUTBOX_TEST_KAFKA. nullopt: nobody has started one for us.
[[nodiscard]] std::optional<std::string> service_address(std::string_view name);

}  // namespace outbox::test
