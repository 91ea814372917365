#include <algorithm>
#include <charconv>

#include "relay/core/topic_name.hpp"
#include "relay/doctor/judge.hpp"

namespace outbox::relay {
namespace {

constexpr std::int64_t envelope_bytes = 1024;  // about what headers and key add to a body

std::optional<std::int64_t> number(const TopicConfigFacts& t, const std::string& name) {
  const auto at = t.config.find(name);
  if (at == t.config.end()) return std::nullopt;
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(at->second.data(), at->second.data() + at->second.size(), out);
  if (error != std::errc{} || end != at->second.data() + at->second.size()) return std::nullopt;
  return out;
}

std::string text(const TopicConfigFacts& t, const std::string& name) {
  const auto at = t.config.find(name);
  return at == t.config.end() ? "" : at->second;
}

// Everything about one topic; what is in order says nothing, so that hundreds of topics stay readable.
class TopicJudge {
 public:
  TopicJudge(const TopicConfigFacts& topic, const WaitingTopic& waiting, config::CreateTopics create,
             const JudgeLimits& limits, Findings& out)
      : t_(topic), waiting_(waiting), create_(create), limits_(limits), out_(out) {}

  void judge() {
    if (t_.state != TopicState::present) return absent();
    leaders();
    replicas();
    unclean();
    limit();
    retention();
    memory();
    compaction();
    pinned();
    if (t_.config.empty())
      add("kafka.topic_config", Severity::note, "its settings cannot be read",
          "grant DESCRIBE_CONFIGS on the topic");
  }

 private:
  void add(std::string check, Severity severity, const std::string& found, std::string advice) {
    const std::string named =
        waiting_.topic == t_.topic ? t_.topic : t_.topic + " (of " + waiting_.topic + ")";
    out_.push_back({std::move(check), severity, "topic " + named + ": " + found, std::move(advice)});
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

  void leaders() {
    if (t_.leaderless > 0)
      add("kafka.leaders", Severity::warning, std::to_string(t_.leaderless) + " partitions have no leader",
          "bring their brokers back; rows of those partitions wait");
  }

  void replicas() {
    const auto in_sync = number(t_, "min.insync.replicas");
    if (t_.replicas == 1)
      return add("kafka.replicas", Severity::warning, "one replica: a lost disk loses acknowledged messages",
                 "three replicas, min.insync.replicas=2");
    if (!in_sync) return;
    if (*in_sync < 2)
      add("kafka.replicas", Severity::warning,
          "min.insync.replicas is 1: with the others down, acks=all means one disk",
          "set min.insync.replicas=2");
    else if (*in_sync >= t_.replicas)
      add("kafka.replicas", Severity::warning,
          "min.insync.replicas is " + std::to_string(*in_sync) + " of " + std::to_string(t_.replicas) +
              " replicas: one broker down stops the topic",
          "one replica more, or min.insync.replicas one less");
  }

  void unclean() {
    if (text(t_, "unclean.leader.election.enable") == "true")
      add("kafka.unclean_election", Severity::warning,
          "unclean.leader.election.enable is true: a broker that lags can become leader, and acknowledged "
          "messages go",
          "set it to false");
  }

  void limit() {
    const auto most = number(t_, "max.message.bytes");
    if (most && waiting_.largest_body + envelope_bytes > *most)
      add("kafka.message_bytes", Severity::error,
          "a row of " + std::to_string(waiting_.largest_body) + " bytes waits, and max.message.bytes is " +
              std::to_string(*most) + ": it will be dead",
          "raise max.message.bytes of the topic (and the consumers' fetch limits)");
  }

  void retention() {
    const auto kept = number(t_, "retention.ms");
    if (!kept || *kept < 0 || Millis{*kept} >= limits_.retention) return;
    add("kafka.retention", Severity::warning,
        "retention.ms is " + std::to_string(*kept) + ": a consumer that is away for longer loses messages",
        "at least a day; and consumers must remember ids for longer than it (docs/protocol.md)");
  }

  // A record that comes again after its id was forgotten is no duplicate any more: the library calls it
  // expired.
  void memory() {
    const auto kept = number(t_, "retention.ms");
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
    if (text(t_, "cleanup.policy").find("compact") != std::string::npos)
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
  for (const WaitingTopic& topic : waiting) {
    const auto at = std::ranges::find(facts.topics, topic.kafka, &TopicConfigFacts::topic);
    if (at != facts.topics.end()) TopicJudge{*at, topic, pipeline.topics.create, limits, out}.judge();
  }
  if (out.size() == 1)
    out.push_back(
        {"kafka.topics", Severity::ok, std::to_string(facts.topics.size()) + " topics in order", ""});
  return out;
}

}  // namespace outbox::relay
