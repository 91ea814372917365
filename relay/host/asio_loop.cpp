#include "relay/host/asio_loop.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <unordered_map>
#include <utility>

namespace outbox::relay {

struct AsioLoop::State {
  explicit State(boost::asio::io_context& c) : context(c) {}
  boost::asio::io_context& context;
  TimerId next = 1;
  std::unordered_map<TimerId, boost::asio::steady_timer> timers;
};

AsioLoop::AsioLoop(boost::asio::io_context& context) : state_(std::make_shared<State>(context)) {}
AsioLoop::~AsioLoop() = default;

MonoTime AsioLoop::now() const {
  return std::chrono::steady_clock::now();
}

WallTime AsioLoop::wall() const {
  return std::chrono::time_point_cast<Micros>(std::chrono::system_clock::now());
}

void AsioLoop::post(std::function<void()> turn) {
  boost::asio::post(state_->context, std::move(turn));
}

Loop::TimerId AsioLoop::at(MonoTime when, std::function<void()> turn) {
  const TimerId id = state_->next++;
  auto& timer = state_->timers.emplace(id, boost::asio::steady_timer{state_->context, when}).first->second;
  timer.async_wait(
      [id, turn = std::move(turn), weak = std::weak_ptr{state_}](const boost::system::error_code& error) {
        const auto state = weak.lock();
        if (error || !state || state->timers.erase(id) == 0) return;
        turn();
      });
  return id;
}

void AsioLoop::cancel(TimerId timer) {
  state_->timers.erase(timer);
}

}  // namespace outbox::relay
