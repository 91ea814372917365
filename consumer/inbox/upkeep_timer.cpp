#include "consumer/inbox/upkeep_timer.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace outbox {
namespace {

constexpr std::chrono::seconds again_after{60};
constexpr std::chrono::seconds cancel_patience{1};  // then the round's connection is given up

std::string line_of(const Upkeep& done) {
  return "upkeep made=" + std::to_string(done.made) + " dropped=" + std::to_string(done.dropped) +
         " purged=" + std::to_string(done.purged) + " waiting=" + std::to_string(done.waiting);
}

}  // namespace

UpkeepTimer::UpkeepTimer(InboxOptions options, std::chrono::seconds interval,
                         std::function<void(std::string_view)> log)
    : options_(std::move(options)), interval_(interval), log_(std::move(log)) {
  if (interval_.count() > 0) thread_ = std::thread([this] { run(); });
}

UpkeepTimer::~UpkeepTimer() {
  {
    std::unique_lock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
    if (inbox_) inbox_->cancel();
    if (!changed_.wait_for(lock, cancel_patience, [this] { return !inbox_; })) inbox_->abandon();
  }
  if (thread_.joinable()) thread_.join();
}

void UpkeepTimer::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    inbox_.emplace(options_);
    lock.unlock();
    const auto wait = round() ? interval_ : std::min(interval_, again_after);
    lock.lock();
    inbox_.reset();
    changed_.notify_all();
    changed_.wait_for(lock, wait, [this] { return ending_; });
  }
}

bool UpkeepTimer::round() {
  try {
    const Upkeep done = inbox_->maintain();
    if (done.made + done.dropped + done.waiting > 0 || done.purged > 0) log_(line_of(done));
    failed_ = false;
    return done.waiting == 0;
  } catch (const SqlError& e) {
    if (!failed_) log_(std::string("upkeep_failed reason=\"") + e.what() + "\" next=\"tried again\"");
    failed_ = true;
    return false;
  }
}

}  // namespace outbox
