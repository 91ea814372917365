#pragma once
// From the figures of process, pipelines and surveys to the samples of a scrape. Reads only; nothing is kept.
// Thread: the loop's, which owns the figures.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "relay/kafka/statistics.hpp"
#include "relay/metrics/exposition.hpp"
#include "relay/metrics/process_figures.hpp"
#include "relay/postgres/survey_facts.hpp"
#include "relay/postgres/upkeep_options.hpp"
#include "relay/shell/figures.hpp"

namespace outbox::relay {

struct PipelineView {
  std::string_view name{};
  Figures figures{};
  SurveyFigures survey{};
  UpkeepFigures upkeep{};
  std::optional<KafkaStatistics> kafka{};
};

void collect(const ProcessFigures& process, Exposition& out);
void collect(const PipelineView& pipeline, MonoTime now, Exposition& out);

}  // namespace outbox::relay
