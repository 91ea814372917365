#include "bench/takeover.hpp"

#include <chrono>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <thread>

#include "bench/relay.hpp"

namespace bench {
namespace {

using namespace outbox;
using Clock = std::chrono::steady_clock;

constexpr auto patience = std::chrono::seconds{30};
constexpr const char* owners =
    "SELECT count(DISTINCT owner) FROM outbox_lease WHERE lease_until > now() AND owner IS NOT NULL";
constexpr const char* waiting = "SELECT count(*) FROM outbox_msg WHERE status = 'PENDING'";

void await(pg::Session& session, const char* sql, long long wanted) {
  const auto until = Clock::now() + patience;
  while (number_of(session, sql) != wanted) {
    if (Clock::now() > until) throw std::runtime_error(std::string{"it took too long until "} + sql);
    std::this_thread::sleep_for(Millis{5});
  }
}

// One of two instances ends by `signal`; the other, which stays, is returned with how long it took.
double seconds_without(Stage& stage, pg::Session& session, const std::string& topic, Relay& staying,
                       int signal) {
  const auto leaving = std::make_unique<Relay>(stage, "takeover");
  await(session, owners, 2);
  load_backlog(session, topic, keys);  // both are at work, and all is warm
  await(session, waiting, 0);
  const auto start = Clock::now();
  leaving->signal(signal);
  load_backlog(session, topic, keys);
  await(session, waiting, 0);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  staying.check();
  return seconds;
}

}  // namespace

void measure_takeover(Stage& stage, const Options& options, Figures& figures) {
  Figures::say("take-over by another instance, the lease's ttl at its default of 5 s");
  stage.make_database("takeover");
  const std::string topic = stage.kafka().new_topic("takeover", partitions);
  {
    pg::Session session = stage.session("takeover");
    Relay staying(stage, "takeover");
    for (int round = 0; round < options.rounds; ++round) {
      figures.add("takeover_kill_s", seconds_without(stage, session, topic, staying, SIGKILL));
      await(session, owners, 1);
      figures.add("takeover_term_s", seconds_without(stage, session, topic, staying, SIGTERM));
      await(session, owners, 1);
    }
    staying.stop();
  }
  stage.drop_database("takeover");
}

}  // namespace bench
