#include "relay/check/judge.hpp"

namespace outbox::relay {
namespace {

constexpr const char* check = "kafka.access";

Finding hidden() {
  return {
      check, Severity::note,
      "the cluster tells no rule of who may write topics: it has no access control, or it does not let this "
      "client see the rules",
      "without access control whoever reaches the cluster can write what consumers believe. Where there is "
      "one, grant DESCRIBE on the cluster to have this checked; the relay does without, and holds a topic "
      "that it may not write"};
}

Finding nobody_known() {
  return {check, Severity::note,
          "there is access control, and whom the brokers take this client for is theirs to say (a "
          "certificate, Kerberos or OAuth)",
          "compare `kafka-acls --list --topic TOPIC` with the brokers' rules for principals"};
}

Finding not_allowed(const std::string& topic, const std::string& principal, Access access) {
  if (access == Access::denied)
    return {check, Severity::warning, "topic " + topic + ": a rule denies " + principal + " to write it",
            "remove the rule; a denial wins over every grant"};
  return {
      check, Severity::warning, "topic " + topic + ": no rule lets " + principal + " write it",
      "grant it WRITE, DESCRIBE and DESCRIBE_CONFIGS on the topic, unless it is a super user; rows of the "
      "topic wait until then"};
}

}  // namespace

Findings judge_access(const ClusterFacts& facts, const config::Pipeline& pipeline) {
  if (!facts.access) return {hidden()};
  const auto principal = principal_of(pipeline.kafka);
  if (!principal) return {nobody_known()};
  Findings out;
  for (const TopicConfigFacts& topic : facts.topics) {
    const auto access = access_to(*facts.access, AccessOperation::write, *principal, topic.topic);
    if (topic.state == TopicState::present && access != Access::allowed)
      out.push_back(not_allowed(topic.topic, *principal, access));
  }
  if (out.empty()) out.push_back({check, Severity::ok, *principal + " may write the topics", ""});
  return out;
}

}  // namespace outbox::relay
