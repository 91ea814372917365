#pragma once
// Port Loop on Boost.Asio. Thread: the one that runs the io_context, which must outlive it.

#include <memory>

#include "relay/ports/loop.hpp"

namespace boost::asio {
class io_context;
}

namespace outbox::relay {

class AsioLoop final : public Loop {
 public:
  explicit AsioLoop(boost::asio::io_context& context);
  ~AsioLoop() override;

  [[nodiscard]] MonoTime now() const override;
  [[nodiscard]] WallTime wall() const override;
  void post(std::function<void()> turn) override;
  TimerId at(MonoTime when, std::function<void()> turn) override;
  void cancel(TimerId timer) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace outbox::relay
