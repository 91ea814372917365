#pragma once
// What the process tells about itself: versions, what it uses, what it said.

#include <cstdint>
#include <string>

namespace outbox::relay {

struct ProcessFigures {
  std::string version{};
  std::string librdkafka{};
  std::string libpq{};
  double started_at = 0;  ///< seconds since 1970
  std::int64_t warnings = 0;
  std::int64_t errors = 0;
  std::int64_t requests = 0;  ///< of the admin endpoint
  std::int64_t refused = 0;
};

/// What the kernel says of this process now; zeros where it does not.
struct ProcessUse {
  double cpu_seconds = 0;
  std::int64_t resident_bytes = 0;
  std::int64_t open_fds = 0;
};
[[nodiscard]] ProcessUse process_use();

}  // namespace outbox::relay
