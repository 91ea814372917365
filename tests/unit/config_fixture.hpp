#pragma once
// Configuration texts for the config tests, and surroundings that hold nothing but what a test puts there.

#include <map>
#include <string>

#include "relay/config/load.hpp"

namespace outbox::config {

struct Outside {
  std::map<std::string, std::string> variables;
  std::map<std::string, std::string> files;

  [[nodiscard]] Surroundings surroundings() const {
    return {[this](const std::string& name) -> std::optional<std::string> {
              const auto it = variables.find(name);
              return it == variables.end() ? std::nullopt : std::optional(it->second);
            },
            [this](const std::string& path) -> tl::expected<std::string, std::string> {
              const auto it = files.find(path);
              if (it == files.end()) return tl::unexpected(std::string("No such file or directory"));
              return it->second;
            }};
  }
};

/// The smallest file that works, with `more` as further lines of the pipeline (indented by four) and `top` of
/// the process.
inline std::string smallest(const std::string& more = "", const std::string& top = "") {
  return top + R"(pipelines:
  - name: payments
    postgres: { uri: "postgresql://outbox_relay@127.0.0.1:5432/payments" }
    kafka:    { bootstrap.servers: "127.0.0.1:9092" }
)" + more;
}

/// Every fault of `yaml` as "file:line:column: …", one a line; empty: it is accepted.
inline std::string faults_of(const std::string& yaml, const Outside& outside = {}) {
  const auto loaded = parse(yaml, outside.surroundings());
  std::string out;
  if (!loaded) {
    for (const Fault& fault : loaded.error()) out += fault.text("f") + "\n";
  }
  return out;
}

}  // namespace outbox::config
