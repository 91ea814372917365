#pragma once
// Whether a consumer remembers for longer than its topics can repeat: asked when it starts, and again for
// topics that are made later. HorizonWatch's lifecycle: its thread lives as long as the object, or until
// every topic was judged.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.hpp"

namespace outbox {

struct HorizonRule {
  std::map<std::string, std::string> properties;  ///< of the consumer's Kafka client
  std::chrono::hours horizon;
  std::chrono::hours publish_delay_max;
};

/// What is known of topics after they were asked about.
struct HorizonAnswer {
  std::vector<std::string> missing{};  ///< not there yet; the others fit the horizon
  bool silent = false;                 ///< the cluster is in reach and does not tell
};

/// Errors: retry: the cluster is away; fatal: a topic does not fit, or the cluster won't tell; the text says
/// which, and what to do. Blocks: up to 10 s.
[[nodiscard]] Result<HorizonAnswer> judge_horizon(const HorizonRule& rule,
                                                  const std::vector<std::string>& topics);

/// What is said of a cluster that stays silent.
[[nodiscard]] std::string silent_cluster();

/// Asks about topics that were not there until they are.
class HorizonWatch {
 public:
  /// `refuse` is called once, from the watch's thread, with what is wrong.
  HorizonWatch(HorizonRule rule, std::vector<std::string> missing, std::function<void(std::string)> refuse,
               std::function<void(std::string_view)> log);
  ~HorizonWatch();
  HorizonWatch(const HorizonWatch&) = delete;
  HorizonWatch& operator=(const HorizonWatch&) = delete;

 private:
  void run();
  [[nodiscard]] bool look();

  HorizonRule rule_;
  std::vector<std::string> missing_;
  std::function<void(std::string)> refuse_;
  std::function<void(std::string_view)> log_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace outbox
