#include "bench/latency.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "bench/raw_publish.hpp"
#include "bench/relay.hpp"
#include "bench/traffic.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double rate_kept_least = 0.95;

/// The share of one core that a relay used between begin() and end().
class CpuWatch {
 public:
  explicit CpuWatch(const Relay& relay) : relay_(relay) { begin(); }
  void begin() { at_ = Clock::now(), cpu_ = relay_.cpu_seconds(); }
  void end() {
    percent_ =
        100 * (relay_.cpu_seconds() - cpu_) / std::chrono::duration<double>(Clock::now() - at_).count();
  }
  [[nodiscard]] double percent() const { return percent_; }

 private:
  const Relay& relay_;
  Clock::time_point at_;
  double cpu_ = 0;
  double percent_ = 0;
};

void add_latency(Figures& figures, const std::string& prefix, const TrafficSeen& seen, int rate) {
  if (seen.missing > 0) throw std::runtime_error(std::to_string(seen.missing) + " rows did not arrive");
  figures.add(prefix + "_p50_ms", quantile(seen.latency_ms, 0.5));
  figures.add(prefix + "_p99_ms", quantile(seen.latency_ms, 0.99));
  figures.add(prefix + "_max_ms", quantile(seen.latency_ms, 1));
  figures.add(prefix + "_rows_per_s", seen.rows_per_s);
  if (seen.rows_per_s < rate_kept_least * rate)
    figures.warn(prefix + ": the writers could not keep the rate; the machine is too busy for latency");
}

void measure_floor(Stage& stage, const Options& options, Figures& figures) {
  const std::string topic = stage.kafka().new_topic("floor", partitions);
  stage.copy_database("empty_outbox", "floor");
  {
    Producer producer(stage.kafka().bootstrap(), topic);
    const TrafficHooks hooks{.committed = [&](int partition, std::string_view body) {
      producer.send(partition, "key-0000", body);
    }};
    add_latency(
        figures, "latency_floor",
        run_traffic(
            stage,
            {.database = "floor", .topic = topic, .rate = options.rate, .counted_s = options.latency_s},
            hooks),
        options.rate);
    producer.flush();
  }
  stage.drop_database("floor");
  stage.kafka().delete_topic(topic);
}

void measure_relay(Stage& stage, const Options& options, Figures& figures, bool idle_too) {
  const std::string topic = stage.kafka().new_topic("latency", partitions);
  stage.copy_database("empty_outbox", "latency");
  Relay relay(stage, "latency");
  CpuWatch cpu(relay);
  const TrafficHooks hooks{.warm = [&] { cpu.begin(); }, .over = [&] { cpu.end(); }};
  add_latency(
      figures, "latency",
      run_traffic(
          stage,
          {.database = "latency", .topic = topic, .rate = options.rate, .counted_s = options.latency_s},
          hooks),
      options.rate);
  figures.add("steady_cpu_percent", cpu.percent());
  if (idle_too) {
    std::this_thread::sleep_for(std::chrono::seconds{2});  // what the traffic left behind is done
    cpu.begin();
    std::this_thread::sleep_for(std::chrono::seconds{options.idle_s});
    cpu.end();
    figures.add("idle_cpu_percent", cpu.percent());
  }
  relay.stop();
  stage.drop_database("latency");
  stage.kafka().delete_topic(topic);
}

}  // namespace

void measure_latency(Stage& stage, const Options& options, Figures& figures) {
  stage.make_database("empty_outbox");
  for (int round = 1; round <= options.rounds; ++round) {
    Figures::say("latency at " + std::to_string(options.rate) + " rows/s, round " + std::to_string(round));
    measure_floor(stage, options, figures);
    measure_relay(stage, options, figures, round == options.rounds);
  }
  stage.drop_database("empty_outbox");
}

}  // namespace bench
