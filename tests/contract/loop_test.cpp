// The daemon's loop and the simulation's keep to one contract.

#include <boost/asio/io_context.hpp>

#include <chrono>

#include "relay/host/asio_loop.hpp"
#include "tests/contract/loop_contract.hpp"
#include "tests/support/fakes/sim_loop.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

class AsioFixture {
 public:
  relay::Loop& loop() { return loop_; }
  bool until(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (!holds() && std::chrono::steady_clock::now() < deadline) turn(Millis{20});
    return holds();
  }
  void pass(Millis time) {
    for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) {
      turn(std::chrono::ceil<Millis>(end - std::chrono::steady_clock::now()));
    }
  }

 private:
  void turn(Millis at_most) {
    context_.restart();
    context_.run_one_for(at_most);
  }
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{context_.get_executor()};
  relay::AsioLoop loop_{context_};
};

class SimFixture {
 public:
  relay::Loop& loop() { return loop_; }
  bool until(const std::function<bool()>& holds) {
    for (int turn = 0; turn < 10'000 && !holds(); ++turn) pass(Millis{1});
    return holds();
  }
  void pass(Millis time) { clock_.run(clock_.now() + time); }

 private:
  SimClock clock_;
  SimLoop loop_{clock_};
};

}  // namespace

TYPE_TO_STRING(AsioFixture);
TYPE_TO_STRING(SimFixture);
OUTBOX_LOOP_CONTRACT(AsioFixture);
OUTBOX_LOOP_CONTRACT(SimFixture);
