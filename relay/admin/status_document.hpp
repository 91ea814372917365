#pragma once
// /status: everything that the status page shows, as one JSON object. Never a payload, a header or a secret;
// keys only where they are on hold.

#include <span>
#include <string>
#include <vector>

#include "relay/admin/history.hpp"
#include "relay/log/recent.hpp"
#include "relay/metrics/collect.hpp"

namespace outbox::relay {

struct StatusInput {
  const ProcessFigures& process;
  std::string_view instance;
  WallTime now;
  MonoTime mono;
  std::span<const PipelineView> pipelines;
  std::span<const History> histories;  ///< one a pipeline
  const std::vector<log::RecentLine>& log;
};

[[nodiscard]] std::string status_document(const StatusInput& input);

}  // namespace outbox::relay
