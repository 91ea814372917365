#include "relay/kafka/worker.hpp"

#include <utility>

namespace outbox::relay {

void Worker::ask(std::function<void()> work) {
  {
    const std::lock_guard lock{mutex_};
    if (stopping_) return;
    queue_.push_back(std::move(work));
  }
  asked_.notify_one();
}

void Worker::join() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  asked_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Worker::run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock{mutex_};
      asked_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace outbox::relay
