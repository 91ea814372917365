#include "bench/scale.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>

#include "bench/drain.hpp"
#include "tests/support/fault_proxy.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
using outbox::test::Fault;
using outbox::test::FaultProxy;

constexpr std::array databases{"scale_a", "scale_b"};
constexpr int far_part = 10;  // of the rows, since they take longer

/// Seconds of work that all processes together got from the machine's processors since it started.
double busy_seconds() {
  std::ifstream stat("/proc/stat");
  std::string word;
  stat >> word;  // "cpu", the sum of all
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0;
  stat >> user >> nice >> system >> idle >> iowait >> irq >> softirq;
  return (user + nice + system + irq + softirq) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// A database's way to a relay: straight, or by a proxy that keeps each piece of what it carries, 16 kB at
/// most, for half of `round_trip`, and takes the next one after it.
class Way {
 public:
  Way(const Stage& stage, const std::string& database, outbox::Millis round_trip)
      : uri_(stage.uri(database, "outbox_relay")) {
    if (round_trip == outbox::Millis{0}) return;
    const std::size_t colon = uri_.rfind(':');
    const std::size_t slash = uri_.find('/', colon);
    proxy_ = std::make_unique<FaultProxy>(
        static_cast<std::uint16_t>(std::stoi(uri_.substr(colon + 1, slash - colon - 1))));
    proxy_->inflict_new(
        {.kind = Fault::Kind::latency, .toward = outbox::test::Toward::both, .by = round_trip / 2});
    uri_.replace(colon + 1, slash - colon - 1, std::to_string(proxy_->port()));
  }
  [[nodiscard]] const std::string& uri() const { return uri_; }

 private:
  std::string uri_;
  std::unique_ptr<FaultProxy> proxy_;
};

class Drains {
 public:
  Drains(Stage& stage, const Options& options, Figures& figures)
      : stage_(stage), options_(options), figures_(figures) {
    for (std::size_t i = 0; i < databases.size(); ++i) {
      topics_.at(i) = outbox::test::KafkaCluster::unique_topic("scale");
      stage.make_database(databases.at(i));
      outbox::pg::Session session = stage.session(databases.at(i));
      load_backlog(session, topics_.at(i), options.rows);
    }
  }
  void close() {
    for (const char* database : databases) stage_.drop_database(database);
  }

  void near_round() {
    together("scale_one", 1, outbox::Millis{0});
    together("scale_two", 2, outbox::Millis{0});
  }
  void far_round() {
    together("far_one", 1, outbox::Millis{options_.far_ms});
    together("far_two", 2, outbox::Millis{options_.far_ms});
  }
  /// The rest stays out of the far rounds.
  void shorten() {
    for (const char* database : databases) {
      outbox::pg::Session session = stage_.session(database);
      outbox::pg::Params keep;
      keep.i32(rows_ / far_part);
      outbox::test::must(session.exec("DELETE FROM public.outbox_msg WHERE id > $1", keep));
      outbox::test::must(session.exec("VACUUM FULL ANALYZE public.outbox_msg"));
    }
    rows_ /= far_part;
  }

 private:
  // The rate is that of all rows until the last of the relays is through.
  void together(const std::string& name, std::size_t relays, outbox::Millis round_trip) {
    std::vector<std::unique_ptr<Way>> ways;
    for (std::size_t i = 0; i < relays; ++i) {
      const std::string copy = std::string(databases.at(i)) + "_round";
      stage_.copy_database(databases.at(i), copy);
      stage_.kafka().create_topic(topics_.at(i), partitions);
      ways.push_back(std::make_unique<Way>(stage_, copy, round_trip));
    }
    const double busy = busy_seconds();
    const auto start = Clock::now();
    std::vector<std::future<Drained>> draining;
    draining.reserve(relays);
    for (std::size_t i = 0; i < relays; ++i)
      draining.push_back(std::async(std::launch::async, [&, i] {
        return drain(stage_, std::string(databases.at(i)) + "_round", topics_.at(i), rows_,
                     {.postgres = ways[i]->uri()});
      }));
    double slowest = 0;
    double cpu = 0;
    for (auto& one : draining) {
      const Drained drained = one.get();
      slowest = std::max(slowest, drained.seconds);
      cpu += drained.cpu_s;
    }
    const std::chrono::duration<double> took = Clock::now() - start;
    for (std::size_t i = 0; i < relays; ++i) {
      stage_.drop_database(std::string(databases.at(i)) + "_round");
      stage_.kafka().delete_topic(topics_.at(i));
    }
    figures_.add(name + "_rows_per_s", static_cast<double>(relays) * rows_ / slowest);
    figures_.add(name + "_busy_cores", (busy_seconds() - busy) / took.count());
    figures_.add(name + "_relay_cpu_s", cpu);
  }

  Stage& stage_;
  const Options& options_;
  Figures& figures_;
  int rows_ = options_.rows;
  std::array<std::string, databases.size()> topics_;
};

}  // namespace

void measure_scale(Stage& stage, const Options& options, Figures& figures) {
  Drains drains(stage, options, figures);
  for (int round = 1; round <= options.rounds; ++round) {
    Figures::say("one instance, then two on two databases, round " + std::to_string(round));
    drains.near_round();
  }
  drains.shorten();
  for (int round = 1; round <= options.rounds; ++round) {
    Figures::say("the same, databases " + std::to_string(options.far_ms) + " ms away, round " +
                 std::to_string(round));
    drains.far_round();
  }
  drains.close();
  figures.add("two_instances_ratio",
              figures.median("scale_two_rows_per_s") / figures.median("scale_one_rows_per_s"));
  figures.add("two_far_instances_ratio",
              figures.median("far_two_rows_per_s") / figures.median("far_one_rows_per_s"));
}

}  // namespace bench
