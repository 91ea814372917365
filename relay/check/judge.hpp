#pragma once
// From facts to findings: every rule of `outboxd check`, one small function each. Pure.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "relay/check/finding.hpp"
#include "relay/check/postgres_facts.hpp"
#include "relay/config/config.hpp"
#include "relay/kafka/cluster_facts.hpp"

namespace outbox::relay {

struct JudgeLimits {
  Millis transaction_age{300'000};          ///< an older one holds vacuum back
  Micros clock_difference{5'000'000};       ///< between a server and this machine
  Millis partitions_ahead{2 * 86'400'000};  ///< fewer are a warning
  Millis retention{86'400'000};             ///< of a topic; shorter is a warning
  std::optional<ShortestMemory> memory{};   ///< a topic that keeps for longer is a warning
};

/// Of the configuration and the file that it stands in. `mode`: the file's permissions; nullopt: unknown.
[[nodiscard]] Findings judge_config(const config::Config& config, const config::Pipeline& pipeline,
                                    std::optional<unsigned> mode);
[[nodiscard]] Findings judge_server(const ServerFacts& facts, const config::Pipeline& pipeline,
                                    const JudgeLimits& limits);
/// `newest`: the last migration of each set that this program knows.
[[nodiscard]] Findings judge_table(const TableFacts& facts, const config::Pipeline& pipeline,
                                   const std::map<std::string, std::int64_t>& newest,
                                   const JudgeLimits& limits);
/// Each of `waiting` by what Kafka calls it.
[[nodiscard]] Findings judge_cluster(const ClusterFacts& facts, const std::vector<WaitingTopic>& waiting,
                                     const config::Pipeline& pipeline, const JudgeLimits& limits);
/// The topic of the ledger; nullopt: the pipeline needs none.
[[nodiscard]] std::optional<std::string> ledger_of(const config::Pipeline& pipeline);
/// Of the ledger's topic, which must be among those that were asked for; nothing where none is needed.
/// Whether the relay may use its transactional ids no cluster tells by librdkafka: `run` names it.
[[nodiscard]] Findings judge_ledger(const ClusterFacts& facts, const config::Pipeline& pipeline);
/// Whether the relay may write the topics that are there, as far as the cluster tells.
[[nodiscard]] Findings judge_access(const ClusterFacts& facts, const config::Pipeline& pipeline);

}  // namespace outbox::relay
