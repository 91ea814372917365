#include "outbox/consumer.hpp"

#include <cstdio>
#include <optional>
#include <thread>

#include "consumer/core/kafka_settings.hpp"
#include "consumer/inbox/upkeep_timer.hpp"
#include "consumer/kafka/horizon_watch.hpp"
#include "consumer/kafka/subscription.hpp"
#include "consumer/loop/consumer_loop.hpp"

namespace outbox {
namespace {

constexpr Millis silence_max{10'000};  // of a cluster in reach that is asked how long it keeps its topics

void require(bool holds, const std::string& what) {
  if (!holds) throw ConsumerError("outbox: " + what);
}

void check_bounds(const ConsumerOptions& o) {
  require(!o.topics.empty(), "topics is empty");
  require(o.workers >= 1 && o.workers <= 64, "workers must be 1 to 64");
  require(o.offsets == Offsets::kafka || o.order == Order::partition,
          "offsets in the database need order = Order::partition");
  require(o.batch_rows_max >= 1 && o.batch_rows_max <= 10'000, "batch_rows_max must be 1 to 10,000");
  require(o.batch_bytes_max >= 1, "batch_bytes_max must be 1 or more");
  require(o.buffer_bytes_max >= o.batch_bytes_max, "buffer_bytes_max must not be less than batch_bytes_max");
  require(o.backoff_initial.count() >= 1 && o.backoff_max >= o.backoff_initial,
          "backoff_initial must be 1 ms or more, and backoff_max not less than it");
  require(o.dead_retry_interval.count() >= 0, "dead_retry_interval must not be negative");
  require(o.maintain_interval.count() >= 0, "maintain_interval must not be negative");
  require(o.publish_delay_max.count() >= 0, "publish_delay_max must not be negative");
  require(o.commit_interval.count() >= 0, "commit_interval must not be negative");
  require(o.drain_timeout.count() >= 0, "drain_timeout must not be negative");
}

std::map<std::string, std::string> checked_properties(const ConsumerOptions& o) {
  auto settings = kafka_settings(o.kafka, o.name);
  std::string all;
  for (const auto& [property, why] : settings.refused) {
    const auto given = o.kafka.find(property);
    all.append(all.empty() ? "kafka: " : "; ").append(property);
    if (given != o.kafka.end() && !secret_property(property)) all.append("=").append(given->second);
    all.append(": ").append(why);
  }
  require(all.empty(), all);
  return std::move(settings.properties);
}

InboxOptions inbox_options(const ConsumerOptions& o) {
  return {.name = o.name,
          .postgres = o.postgres,
          .schema = o.schema,
          .attempts_max = o.attempts_max,
          .after_attempts = o.after_attempts,
          .guard = o.guard,
          .id_of = o.id_of,
          .horizon = o.horizon,
          .on_outcome = o.on_outcome};
}

InboxOptions upkeep_options(const ConsumerOptions& o) {
  auto options = inbox_options(o);
  options.on_outcome = nullptr;
  return options;
}

LoopOptions loop_options(const ConsumerOptions& o) {
  return {.limits = {.batch_rows_max = o.batch_rows_max,
                     .batch_bytes_max = o.batch_bytes_max,
                     .buffer_rows_max = std::int64_t{o.batch_rows_max} * 10,
                     .buffer_bytes_max = o.buffer_bytes_max,
                     .backoff = {o.backoff_initial, o.backoff_max},
                     .workers = o.workers,
                     .order = o.order},
          .commit_interval = o.commit_interval,
          .drain_timeout = o.drain_timeout,
          .dead_retry_interval = o.dead_retry_interval,
          .attempts_max = o.attempts_max,
          .metrics = o.metrics,
          .log = o.log};
}

void to_standard_error(std::string_view line) {
  std::fprintf(stderr, "outbox: %.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace

struct Consumer::State {
  explicit State(ConsumerOptions o) : options(std::move(o)), properties(checked_properties(options)) {
    check_bounds(options);
    make_inboxes();
    if (!options.log) options.log = to_standard_error;
  }

  /// Again for each run: one that was abandoned stays so.
  void make_inboxes() {
    inboxes.clear();
    for (int n = 0; n < options.workers; ++n) inboxes.emplace_back(inbox_options(options));
  }

  /// Tries `attempt` until it is done or stop(): what is starting is waited for. An attempt throws where it
  /// never will be, and answers why where it is not yet.
  void insist(const char* event, const std::function<std::optional<std::string>()>& attempt) {
    Backoff backoff({options.backoff_initial, options.backoff_max}, 1);
    bool told = false;
    while (!stop) {
      const auto reason = attempt();
      if (!reason) return;
      if (!told) options.log(std::string(event) + " reason=\"" + *reason + "\"");
      told = true;
      const auto until = std::chrono::steady_clock::now() + backoff.next();
      while (!stop && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(Millis{20});
    }
  }

  void wait_for_database() {
    insist("database_away", [&]() -> std::optional<std::string> {
      try {
        inboxes.front().check();
        return std::nullopt;
      } catch (const SqlError& e) {
        if (!e.transient()) throw ConsumerError(e.what());
        return e.what();
      }
    });
  }

  [[nodiscard]] HorizonRule horizon_rule() const {
    return {properties, options.horizon, options.publish_delay_max};
  }

  /// The topics that are not there yet.
  std::vector<std::string> check_horizon() {
    if (options.horizon_check == HorizonCheck::unchecked) options.log("horizon: unchecked");
    if (options.horizon_check == HorizonCheck::unchecked || options.horizon == forever) return {};
    std::vector<std::string> missing;
    std::optional<MonoTime> silent_since;
    insist("kafka_away", [&]() -> std::optional<std::string> {
      const auto answer = judge_horizon(horizon_rule(), options.topics);
      if (!answer && answer.error().disposition != Disposition::retry)
        throw ConsumerError(answer.error().text());
      if (!answer) return answer.error().text();
      if (answer->silent) {
        const MonoTime now = std::chrono::steady_clock::now();
        if (!silent_since) silent_since = now;
        if (now - *silent_since > silence_max) throw ConsumerError(silent_cluster());
        return silent_cluster();
      }
      missing = answer->missing;
      return std::nullopt;
    });
    return missing;
  }

  void run(const LoopWork& work) {
    struct Rearm {
      std::atomic<bool>& stop;
      ~Rearm() { stop = false; }
    } const rearm{stop};
    make_inboxes();
    wait_for_database();
    const auto missing = check_horizon();
    if (stop) return;
    std::string refused;  // the watch's alone until it is destroyed
    {
      const UpkeepTimer upkeep(upkeep_options(options), options.maintain_interval, options.log);
      const HorizonWatch watch(
          horizon_rule(), missing,
          [&](std::string why) {
            refused = std::move(why);
            stop = true;
          },
          options.log);
      Inbox claims(upkeep_options(options));
      auto subscription = subscribe_kafka(
          {.properties = properties,
           .topics = options.topics,
           .start_at = options.start_at,
           .stopping = [this] { return stop.load(); },
           .remember = [&](const PartitionId& id, std::int64_t next) -> Result<std::int64_t> {
             try {
               return claims.start_partition(id.topic, id.partition, next);
             } catch (const SqlError& e) {
               return failure(e.transient() ? Disposition::retry : Disposition::fatal, e.what());
             }
           }});
      if (!subscription) throw ConsumerError(subscription.error().text());
      auto loop = loop_options(options);
      if (options.offsets == Offsets::database)
        loop.claim = [&](const PartitionId& id) { return claims.claim_partition(id.topic, id.partition); };
      ConsumerLoop(inboxes, **subscription, counters, std::move(loop)).run(work, stop);
    }
    if (!refused.empty()) throw ConsumerError(refused);
  }

  ConsumerOptions options;
  std::map<std::string, std::string> properties;
  std::vector<Inbox> inboxes;  ///< one for each worker
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
  state_->run(loop_work(handler));
}

void Consumer::run(const SpanHandler& handler) {
  state_->run(loop_work(handler));
}

void Consumer::stop() noexcept {
  state_->stop = true;
}

Counters Consumer::counters() const {
  return state_->counters.snapshot();
}

}  // namespace outbox
