#pragma once
// The upkeep of processed_msgs while a Consumer runs: inbox_maintain() at once and then at every interval, on
// a thread and a connection of its own, which is closed in between. Instances that meet leave it to one of
// them, by the function's own lock. What fails is said once and tried again a minute later.
// Lifecycle: the thread lives as long as this object, whose end cancels a round that is under way: it is
// waited for no longer than a connection takes to fail.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "outbox/inbox.hpp"

namespace outbox {

class UpkeepTimer {
 public:
  /// interval 0: does nothing.
  UpkeepTimer(InboxOptions options, std::chrono::seconds interval, std::function<void(std::string_view)> log);
  ~UpkeepTimer();
  UpkeepTimer(const UpkeepTimer&) = delete;
  UpkeepTimer& operator=(const UpkeepTimer&) = delete;

 private:
  void run();
  [[nodiscard]] bool round();

  InboxOptions options_;
  std::chrono::seconds interval_;
  std::function<void(std::string_view)> log_;
  bool failed_ = false;  // the thread's own
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::optional<Inbox> inbox_;  // while a round is under way
  std::thread thread_;
};

}  // namespace outbox
