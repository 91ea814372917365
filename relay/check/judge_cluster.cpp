#include <algorithm>
#include <set>

#include "relay/check/judge.hpp"
#include "relay/check/topic_settings.hpp"
#include "relay/core/message/topic_name.hpp"

namespace outbox::relay {
namespace {

constexpr std::int64_t envelope_bytes = 1024;  // about what headers and key add to a body

// Everything about one topic; what is in order says nothing, so that hundreds of topics stay readable.
class TopicJudge {
 public:
  TopicJudge(const TopicConfigFacts& topic, const WaitingTopic& waiting, config::CreateTopics create,
             const JudgeLimits& limits, Findings& out)
      : t_(topic), waiting_(waiting), create_(create), limits_(limits), out_(out) {}

  void judge() {
    if (t_.state != TopicState::present) return absent();
    judge_durability(t_, named(), "rows of those partitions wait", out_);
    limit();
    retention();
    memory();
    compaction();
    pinned();
  }

 private:
  void add(std::string check, Severity severity, const std::string& found, std::string advice) {
    out_.push_back({std::move(check), severity, "topic " + named() + ": " + found, std::move(advice)});
  }
  [[nodiscard]] std::string named() const {
    return waiting_.topic == t_.topic ? t_.topic : t_.topic + " (of " + waiting_.topic + ")";
  }

  void absent() {
    const bool forbidden = t_.state == TopicState::forbidden;
    if (!forbidden && create_ == config::CreateTopics::on && !topic_name_fault(t_.topic))
      return add("kafka.topic", Severity::note, "it is not there yet, and topics.create is on",
                 "nothing, where the relay has the right CREATE: it makes the topic for its first row");
    add("kafka.topic", Severity::error,
        t_.reason + ", and " + std::to_string(waiting_.rows) + " rows wait for it",
        forbidden ? "grant DESCRIBE and WRITE on it to the relay's principal"
                  : "create it, or correct the rows' topic; the relay holds the topic and probes it");
  }

  void limit() {
    const auto most = setting_number(t_, "max.message.bytes");
    if (most && waiting_.largest_body + envelope_bytes > *most)
      add("kafka.message_bytes", Severity::error,
          "a row of " + std::to_string(waiting_.largest_body) + " bytes waits, and max.message.bytes is " +
              std::to_string(*most) + ": it will be dead",
          "raise max.message.bytes of the topic (and the consumers' fetch limits)");
  }

  void retention() {
    const auto kept = setting_number(t_, "retention.ms");
    if (!kept || *kept < 0 || Millis{*kept} >= limits_.retention) return;
    add("kafka.retention", Severity::warning,
        "retention.ms is " + std::to_string(*kept) + ": a consumer that is away for longer loses messages",
        "at least a day; and consumers must remember ids for longer than it (docs/protocol.md)");
  }

  // A record that comes again after its id was forgotten is no duplicate any more: the library calls it
  // expired.
  void memory() {
    const auto kept = setting_number(t_, "retention.ms");
    if (!kept || !limits_.memory) return;
    const auto& [consumer, horizon] = *limits_.memory;
    if (*kept >= 0 && Millis{*kept} < horizon) return;
    add("kafka.dedup_horizon", Severity::warning,
        "it keeps messages for " + (*kept < 0 ? std::string{"ever"} : std::to_string(*kept / 1000) + " s") +
            ", and consumer " + consumer + " remembers ids for " + std::to_string(horizon.count() / 1000) +
            " s: one that is read again after that is refused as expired",
        "a longer horizon of the consumer, or a shorter retention.ms");
  }

  void compaction() {
    if (setting(t_, "cleanup.policy").find("compact") != std::string::npos)
      add("kafka.compaction", Severity::warning,
          "cleanup.policy has compact: earlier messages of a key vanish, whether or not they were consumed",
          "cleanup.policy=delete for events; compact only where a message replaces its predecessors");
  }

  void pinned() {
    if (waiting_.pinned == 0 || waiting_.pinned == t_.partitions) return;
    add("kafka.partitions", Severity::note,
        "keys are spread over " + std::to_string(waiting_.pinned) + " partitions, the topic has " +
            std::to_string(t_.partitions),
        "the relay takes the new count over once nothing of the topic is in flight");
  }

  const TopicConfigFacts& t_;
  const WaitingTopic& waiting_;
  const config::CreateTopics create_;
  const JudgeLimits& limits_;
  Findings& out_;
};

}  // namespace

Findings judge_cluster(const ClusterFacts& facts, const std::vector<WaitingTopic>& waiting,
                       const config::Pipeline& pipeline, const JudgeLimits& limits) {
  Findings out{{"kafka.reachable", Severity::ok, std::to_string(facts.brokers) + " brokers answer", ""}};
  std::set<std::string> judged;
  for (const WaitingTopic& topic : waiting) {
    judged.insert(topic.kafka);
    const auto at = std::ranges::find(facts.topics, topic.kafka, &TopicConfigFacts::topic);
    if (at != facts.topics.end()) TopicJudge{*at, topic, pipeline.topics.create, limits, out}.judge();
  }
  if (out.size() == 1)
    out.push_back({"kafka.topics", Severity::ok, std::to_string(judged.size()) + " topics in order", ""});
  return out;
}

}  // namespace outbox::relay
