#include "bench/notify_cost.hpp"

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "bench/relay.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
using outbox::test::must;

constexpr int commits_per_s = 2'000;
constexpr int writers = 8;
constexpr double rate_kept_least = 0.95;

struct Commits {
  std::vector<double> ms;
  double per_s = 0;
};

std::vector<double> write(outbox::pg::Session session, const std::string& topic, Clock::time_point start,
                          int first, int rows) {
  const std::chrono::nanoseconds pace{1'000'000'000 / commits_per_s};
  std::vector<double> ms;
  for (int i = first; i < rows; i += writers) {
    outbox::pg::Params params;
    params.text(topic).text("key-" + std::to_string(i % keys)).untyped(body_of(i));
    std::this_thread::sleep_until(start + i * pace);
    const auto begun = Clock::now();
    must(session.exec_prepared("INSERT INTO public.outbox_msg (topic, msg_key, body) VALUES ($1, $2, $3)",
                               params));
    ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begun).count());
  }
  return ms;
}

Commits write_all(Stage& stage, const std::string& database, const std::string& topic, int seconds) {
  const int rows = commits_per_s * seconds;
  std::vector<outbox::pg::Session> sessions;
  sessions.reserve(writers);
  for (int i = 0; i < writers; ++i) sessions.push_back(stage.session(database));
  const auto start = Clock::now() + std::chrono::milliseconds{200};
  std::vector<std::future<std::vector<double>>> writing;
  writing.reserve(writers);
  for (int i = 0; i < writers; ++i)
    writing.push_back(std::async(std::launch::async, [&, i] {
      return write(std::move(sessions[static_cast<std::size_t>(i)]), topic, start, i, rows);
    }));
  Commits out;
  for (auto& writer : writing) {
    const auto ms = writer.get();
    out.ms.insert(out.ms.end(), ms.begin(), ms.end());
  }
  out.per_s = rows / std::chrono::duration<double>(Clock::now() - start).count();
  return out;
}

}  // namespace

void measure_notify_cost(Stage& stage, const Options& options, Figures& figures) {
  Figures::say("commits beside a relay that is notified, and beside one that polls");
  const std::vector<std::string> modes{"poll", "notify"};
  std::vector<std::string> topics;
  std::vector<std::unique_ptr<Relay>> relays;
  for (const std::string& mode : modes) {
    stage.make_database("mode_" + mode);
    topics.push_back(stage.kafka().new_topic("mode_" + mode, partitions));
    relays.push_back(std::make_unique<Relay>(stage, "mode_" + mode, RelayOptions{.mode = mode}));
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < modes.size(); ++i) {
      const Commits seen = write_all(stage, "mode_" + modes[i], topics[i], options.latency_s);
      figures.add(modes[i] + "_commit_p50_ms", quantile(seen.ms, 0.5));
      figures.add(modes[i] + "_commit_p99_ms", quantile(seen.ms, 0.99));
      if (seen.per_s < rate_kept_least * commits_per_s)
        figures.warn("mode " + modes[i] + ": the writers managed " + std::to_string(seen.per_s) +
                     " commits a second; the machine is too busy for it");
    }
  }
  figures.add("notify_commit_p99_ratio",
              figures.median("notify_commit_p99_ms") / figures.median("poll_commit_p99_ms"));
  for (std::size_t i = 0; i < modes.size(); ++i) {
    relays[i]->stop();
    stage.drop_database("mode_" + modes[i]);
    stage.kafka().delete_topic(topics[i]);
  }
}

}  // namespace bench
