#include "outbox/consumer.hpp"

#include <cstdio>
#include <thread>

#include "consumer/consumer_loop.hpp"
#include "consumer/core/kafka_settings.hpp"
#include "consumer/kafka_subscription.hpp"

namespace outbox {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw ConsumerError("outbox: " + what);
}

void check_bounds(const ConsumerOptions& o) {
  require(!o.topics.empty(), "topics is empty");
  require(o.batch_rows_max >= 1 && o.batch_rows_max <= 10'000, "batch_rows_max must be 1 to 10,000");
  require(o.batch_bytes_max >= 1, "batch_bytes_max must be 1 or more");
  require(o.buffer_bytes_max >= o.batch_bytes_max, "buffer_bytes_max must not be less than batch_bytes_max");
  require(o.backoff_initial.count() >= 1 && o.backoff_max >= o.backoff_initial,
          "backoff_initial must be 1 ms or more, and backoff_max not less than it");
  require(o.commit_interval.count() >= 0, "commit_interval must not be negative");
  require(o.drain_timeout.count() >= 0, "drain_timeout must not be negative");
}

std::map<std::string, std::string> checked_properties(const ConsumerOptions& o) {
  auto settings = kafka_settings(o.kafka, o.name);
  std::string all;
  for (const auto& one : settings.refused) all += (all.empty() ? "kafka: " : "; ") + one;
  require(all.empty(), all);
  return std::move(settings.properties);
}

InboxOptions inbox_options(const ConsumerOptions& o) {
  return {.name = o.name, .postgres = o.postgres, .schema = o.schema, .attempts_max = o.attempts_max};
}

LoopOptions loop_options(const ConsumerOptions& o) {
  return {.limits = {.batch_rows_max = o.batch_rows_max,
                     .batch_bytes_max = o.batch_bytes_max,
                     .buffer_rows_max = std::int64_t{o.batch_rows_max} * 10,
                     .buffer_bytes_max = o.buffer_bytes_max,
                     .backoff = {o.backoff_initial, o.backoff_max}},
          .commit_interval = o.commit_interval,
          .drain_timeout = o.drain_timeout,
          .log = o.log};
}

void to_standard_error(std::string_view line) {
  std::fprintf(stderr, "outbox: %.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace

struct Consumer::State {
  explicit State(ConsumerOptions o)
      : options(std::move(o)), properties(checked_properties(options)), inbox(inbox_options(options)) {
    check_bounds(options);
    if (!options.log) options.log = to_standard_error;
  }

  /// A database that is starting is waited for; one that refuses us is not.
  void wait_for_database() {
    Backoff backoff({options.backoff_initial, options.backoff_max}, 1);
    bool told = false;
    while (!stop) {
      try {
        return inbox.check();
      } catch (const SqlError& e) {
        if (!e.transient()) throw ConsumerError(e.what());
        if (!told) options.log(std::string("database_away reason=\"") + e.what() + "\"");
        told = true;
      }
      const auto until = std::chrono::steady_clock::now() + backoff.next();
      while (!stop && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(Millis{20});
    }
  }

  ConsumerOptions options;
  std::map<std::string, std::string> properties;
  Inbox inbox;
  LiveCounters counters;
  std::atomic<bool> stop{false};
  static_assert(std::atomic<bool>::is_always_lock_free, "stop() may be called in a signal handler");
};

Consumer::Consumer(ConsumerOptions options) try : state_(std::make_unique<State>(std::move(options))) {
} catch (const std::invalid_argument& e) {
  throw ConsumerError(e.what());
}
Consumer::~Consumer() = default;

void Consumer::run(const Handler& handler) {
  State& s = *state_;
  struct Rearm {
    std::atomic<bool>& stop;
    ~Rearm() { stop = false; }
  } const rearm{s.stop};
  s.wait_for_database();
  if (s.stop) return;
  auto subscription = subscribe_kafka(
      {.properties = s.properties, .topics = s.options.topics, .start_at = s.options.start_at});
  if (!subscription) throw ConsumerError(subscription.error().text());
  ConsumerLoop(s.inbox, **subscription, s.counters, loop_options(s.options)).run(handler, s.stop);
}

void Consumer::stop() noexcept {
  state_->stop = true;
}

Counters Consumer::counters() const {
  return state_->counters.snapshot();
}

}  // namespace outbox
