#pragma once
// From a file to a Config, or to every fault in it at once. Pure but for the surroundings it is given.
// Lifecycle: once at start, and by `outboxd config`. Thread: any.

#include <tl/expected.hpp>

#include <string>
#include <vector>

#include "options/section.hpp"
#include "relay/config/config.hpp"

namespace outbox::config {

struct Loaded {
  Config config;
  Origins process;
  std::vector<Origins> pipelines;  ///< one each, in the order of config.pipelines
};

/// Shape: YAML text to a checked Config; faults are sorted by place.
[[nodiscard]] tl::expected<Loaded, Faults> parse(const std::string& yaml, const Surroundings& surroundings);

/// parse() over a file. Errors: the file cannot be read: one Fault without a place.
[[nodiscard]] tl::expected<Loaded, Faults> load_file(const std::string& path,
                                                     const Surroundings& surroundings);

/// How a pipeline is named in faults: "pipelines[payments]".
[[nodiscard]] std::string pipeline_path(const std::string& name);

}  // namespace outbox::config
