#pragma once
// One thread for calls that block, in the order they were asked for. An adapter gives it work from the loop's
// thread and lets the work post its answer back.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace outbox::relay {

class Worker {
 public:
  Worker() : thread_([this] { run(); }) {}
  ~Worker() { join(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Thread: any. After join() it is dropped.
  void ask(std::function<void()> work);
  /// Set from the moment that a join was asked for: work that waits for something gives up.
  [[nodiscard]] const std::atomic<bool>& stopping() const { return stopping_; }
  /// Blocks until everything that was asked for is done.
  void join();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable asked_;
  std::deque<std::function<void()>> queue_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace outbox::relay
