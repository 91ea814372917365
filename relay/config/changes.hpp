#pragma once
// What a configuration that is read again would change, and which of it a running process can take. Pure.

#include <string>
#include <vector>

#include "relay/config/config.hpp"

namespace outbox::config {

struct Changes {
  std::vector<std::string> live;     ///< options that take effect at once: "log.level"
  std::vector<std::string> restart;  ///< those that need a restart: "pipelines[payments].source.lanes"

  [[nodiscard]] bool none() const { return live.empty() && restart.empty(); }
};

/// Shape: by the option table; a pipeline that was added, removed or renamed needs a restart as a whole. An
/// instance that the file leaves open is no change.
[[nodiscard]] Changes changes(const Config& was, const Config& is);

/// Shape: `was`, with the live options of `is`.
[[nodiscard]] Config with_live(Config was, const Config& is);

}  // namespace outbox::config
