#include "consumer/core/horizon.hpp"

#include "outbox/inbox.hpp"

namespace outbox {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

std::string in_hours(milliseconds time) {
  return std::to_string(std::chrono::ceil<hours>(time).count()) + " h";
}

}  // namespace

std::optional<std::string> horizon_fault(const TopicRetention& topic, hours horizon,
                                         hours publish_delay_max) {
  if (horizon == forever) return std::nullopt;
  const std::string subject = "topic " + topic.topic;
  if (topic.compacted)
    return subject + " is compacted: a message can come again at any time, after any horizon";
  if (topic.retention < milliseconds{0})
    return subject + " has no limit of time (retention.ms=-1): a message can come again after any horizon";
  // Kafka takes Long.MAX for "never" as well: compared before anything is added.
  const milliseconds room = milliseconds{horizon} - milliseconds{publish_delay_max};
  if (topic.retention < room && topic.segment < room - topic.retention) return std::nullopt;
  return subject + " keeps a message for retention.ms + segment.ms = " + in_hours(topic.retention) + " + " +
         in_hours(topic.segment) + ", and publish_delay_max is " + in_hours(publish_delay_max) +
         ": the horizon must be longer than their sum, and is " + in_hours(horizon);
}

}  // namespace outbox
