// The ledger's topic (`delivery: exactly_once`). What `run` refuses is an error here, what it mends where it
// has the right to is a warning.
//
// Source: relay/kafka/ledger_topic.cpp, which refuses and mends.

#include <algorithm>

#include "relay/check/judge.hpp"
#include "relay/check/topic_settings.hpp"
#include "relay/core/lanes/ledger.hpp"

namespace outbox::relay {
namespace {

constexpr const char* check = "kafka.ledger";

Finding absent(const TopicConfigFacts& ledger, const std::string& begin, std::int32_t lanes) {
  if (ledger.state == TopicState::forbidden)
    return {check, Severity::error, begin + ledger.reason + ", and no lane sends without it",
            "grant DESCRIBE, READ and WRITE on it to the relay's principal"};
  return {check, Severity::note, begin + "it is not there yet",
          "nothing, where the relay has the right CREATE: its first lane makes it. Else: kafka-topics.sh "
          "--create --topic " +
              ledger.topic + " --partitions " + std::to_string(lanes) + " --config cleanup.policy=compact"};
}

void policy(const TopicConfigFacts& ledger, const std::string& begin, Findings& out) {
  const std::string is = setting(ledger, "cleanup.policy");
  if (is.empty() || is == "compact") return;
  const std::string kept = setting(ledger, "retention.ms");
  out.push_back(
      {check, Severity::error,
       begin + "its cleanup.policy is " + is + (kept.empty() ? "" : " and its retention.ms " + kept) +
           ", which deletes the last record of a quiet lane: the relay refuses it",
       "kafka-configs.sh --alter --topic " + ledger.topic + " --add-config cleanup.policy=compact"});
}

void width(const TopicConfigFacts& ledger, const std::string& begin, std::int32_t lanes, Findings& out) {
  if (ledger.partitions >= lanes) return;
  out.push_back({check, Severity::warning,
                 begin + "it has " + std::to_string(ledger.partitions) + " partitions, and " +
                     std::to_string(lanes) + " lanes need one each",
                 "nothing, where the relay has the right ALTER: it widens it. Else: kafka-topics.sh --alter "
                 "--topic " +
                     ledger.topic + " --partitions " + std::to_string(lanes)});
}

// Writing is judged with the other topics.
void reading(const TopicConfigFacts& ledger, const std::string& begin, const ClusterFacts& facts,
             const config::Pipeline& pipeline, Findings& out) {
  const auto principal = principal_of(pipeline.kafka);
  if (!facts.access || !principal) return;
  const auto access = access_to(*facts.access, AccessOperation::read, *principal, ledger.topic);
  if (access == Access::allowed) return;
  out.push_back({check, Severity::warning,
                 begin + (access == Access::denied ? "a rule denies " + *principal + " to read it"
                                                   : "no rule lets " + *principal + " read it"),
                 access == Access::denied
                     ? "remove the rule; a denial wins over every grant"
                     : "grant it READ on the topic, unless it is a super user: who takes a lane over reads "
                       "what was sent"});
}

}  // namespace

std::optional<std::string> ledger_of(const config::Pipeline& pipeline) {
  if (pipeline.delivery != config::Delivery::exactly_once) return std::nullopt;
  return pipeline.ledger.topic.empty() ? ledger_topic_of(pipeline.name) : pipeline.ledger.topic;
}

Findings judge_ledger(const ClusterFacts& facts, const config::Pipeline& pipeline) {
  const auto name = ledger_of(pipeline);
  if (!name) return {};
  const auto at = std::ranges::find(facts.topics, *name, &TopicConfigFacts::topic);
  if (at == facts.topics.end()) return {};
  const std::string begin = "ledger topic " + *name + ": ";
  const std::int32_t lanes = pipeline.source.lanes;
  if (at->state != TopicState::present) return {absent(*at, begin, lanes)};
  Findings out;
  policy(*at, begin, out);
  width(*at, begin, lanes, out);
  reading(*at, begin, facts, pipeline, out);
  if (out.empty())
    out.push_back(
        {check, Severity::ok,
         "ledger topic " + *name + (at->config.empty() ? " is" : " is compacted and") + " wide enough", ""});
  judge_durability(*at, *name + " (the ledger)", "those lanes send nothing", out);
  return out;
}

}  // namespace outbox::relay
