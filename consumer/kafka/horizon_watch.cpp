#include "consumer/kafka/horizon_watch.hpp"

#include <algorithm>
#include <utility>

#include "consumer/core/horizon.hpp"
#include "consumer/kafka/retention.hpp"

namespace outbox {
namespace {

constexpr std::chrono::seconds look_interval{5};
constexpr const char* advice =
    "raise horizon (outbox::forever is the longest), or say horizon_check = unchecked";

}  // namespace

std::string silent_cluster() {
  return "the cluster does not tell how long it keeps the topics (DescribeConfigs is not answered), so that "
         "the horizon can't be checked: say horizon_check = unchecked where you know that it is longer";
}

Result<HorizonAnswer> judge_horizon(const HorizonRule& rule, const std::vector<std::string>& topics) {
  const auto told = read_retention(rule.properties, topics);
  if (!told) return failure(told.error());
  for (const auto& topic : told->topics)
    if (auto fault = horizon_fault(topic, rule.horizon, rule.publish_delay_max))
      return failure(Disposition::fatal, *std::move(fault), "", advice);
  return HorizonAnswer{.missing = told->missing, .silent = told->silent};
}

HorizonWatch::HorizonWatch(HorizonRule rule, std::vector<std::string> missing,
                           std::function<void(std::string)> refuse, std::function<void(std::string_view)> log)
    : rule_(std::move(rule)), missing_(std::move(missing)), refuse_(std::move(refuse)), log_(std::move(log)) {
  if (!missing_.empty()) thread_ = std::thread([this] { run(); });
}

HorizonWatch::~HorizonWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    ended_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void HorizonWatch::run() {
  for (const auto& topic : missing_)
    log_("topic_missing topic=" + topic + " next=\"its horizon is checked when it is there\"");
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, look_interval, [this] { return ending_; })) {
    lock.unlock();
    const bool goes_on = look();
    lock.lock();
    if (!goes_on) return;
  }
}

/// False: nothing is left to look for. What can't be told now is asked again.
bool HorizonWatch::look() {
  const auto answer = judge_horizon(rule_, missing_);
  if (!answer && answer.error().disposition == Disposition::retry) return true;
  if (!answer) {
    refuse_(answer.error().text());
    return false;
  }
  if (!answer->silent) missing_ = answer->missing;
  return !missing_.empty();
}

}  // namespace outbox
