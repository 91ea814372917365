// While nothing fails a row waits for nothing: neither for a timer that was not set, nor for another event to
// come by.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/sim/world.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

constexpr Millis promptly{50};
constexpr int rows = 3000;

// One relay on a quiet world, in whose turns time passes; a row a millisecond.
class Trickle {
 public:
  explicit Trickle(std::uint64_t seed) : chance_(seed) {
    kafka_.create("plain", 3);
    database_.on_marked = [this](const relay::SentRow& sent) {
      longest_ = std::max(longest_, clock_.now() - committed_.at(sent.id.value));
      marked_ += 1;
    };
  }

  void run() {
    relay::PipelineOptions options;
    options.name = options.owner = "trickle";
    relay::Pipeline pipeline(options, loop_, source_, broker_, log::Logger{});
    pipeline.start();
    clock_.run(clock_.now() + Millis{100});
    write();
    clock_.run(clock_.now() + Millis{10'000});
    loop_.kill();
  }

  [[nodiscard]] MonoTime::duration longest() const { return longest_; }
  [[nodiscard]] int marked() const { return marked_; }

 private:
  void write() {
    if (std::ssize(committed_) == rows) return;
    StoredRow row;
    row.topic = "plain";
    row.key = "k" + std::to_string(chance_.between(1, 50));
    row.shard = relay::Shard{static_cast<std::int16_t>(chance_.between(0, relay::shard_count - 1))};
    row.created_at = clock_.wall();
    const relay::RowId id = database_.insert(row);
    database_.commit(id);
    committed_[id.value] = clock_.now();
    if (database_.asleep_until > clock_.now()) source_.notify();
    clock_.after(chance_.micros(0, 2000), [this] { write(); });
  }

  Chance chance_;
  SimClock clock_;
  FakeDatabase database_;
  FakeKafka kafka_;
  SimLoop loop_{clock_, Micros{40}};
  SourceFaults no_source_faults_;
  BrokerFaults no_broker_faults_;
  FakeSource source_{clock_, loop_, database_, chance_, no_source_faults_};
  FakeBroker broker_{clock_, loop_, kafka_, chance_, no_broker_faults_};
  std::map<std::int64_t, MonoTime> committed_;
  MonoTime::duration longest_{};
  int marked_ = 0;
};

}  // namespace

// A turn that looked for its next moment by a later clock than the one it worked by left out what fell in
// between: rows then lay until the lease was renewed, more than a second.
TEST_CASE("a row is sent without another event, also where time passes within a turn") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Trickle trickle(seed);
    trickle.run();
    INFO("seed ", seed);
    CHECK(trickle.marked() == rows);
    CHECK(std::chrono::duration_cast<Millis>(trickle.longest()) <= promptly);
  }
}
