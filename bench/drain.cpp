#include "bench/drain.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "bench/raw_mark.hpp"
#include "bench/raw_publish.hpp"
#include "bench/reader.hpp"

namespace bench {

using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds patience{600};

void wait_until(const char* what, Relay& relay, outbox::Millis between, const std::function<bool()>& holds) {
  for (const auto deadline = Clock::now() + patience; !holds(); std::this_thread::sleep_for(between)) {
    relay.check();
    if (Clock::now() > deadline) throw std::runtime_error(std::string(what) + " took too long");
  }
}

// Kafka is asked until it has everything, and only then the database: a look at a table under drain walks the
// index entries of all that was marked.
void wait_for_end(Relay& relay, outbox::pg::Session& watch, Reader& reader, long long rows) {
  wait_until("publishing", relay, outbox::Millis{50}, [&] { return reader.messages() >= rows; });
  wait_until("marking", relay, outbox::Millis{5}, [&] {
    return number_of(watch,
                     "SELECT EXISTS (SELECT FROM public.outbox_msg WHERE status = 'PENDING' AND"
                     " available_at IS NULL)::int") == 0;
  });
}

void check_drained(outbox::pg::Session& session, long long rows, const std::string& after_sent) {
  const long long left = number_of(session, "SELECT count(*) FROM public.outbox_msg WHERE status = 'SENT'");
  const long long all = number_of(session, "SELECT count(*) FROM public.outbox_msg");
  if (all != left || left != (after_sent == "mark" ? rows : 0))
    throw std::runtime_error("after the drain " + std::to_string(all) + " rows, " + std::to_string(left) +
                             " SENT");
}

// A broker that has just started runs uncompiled; no production broker has.
void warm_up(Stage& stage, const Options& options) {
  const std::string topic = stage.kafka().new_topic("warm", partitions);
  static_cast<void>(publish_rate(stage.kafka().bootstrap(), topic, options.rows));
  stage.kafka().delete_topic(topic);
}

class Round {
 public:
  Round(Stage& stage, const Options& options, const std::string& topic, Figures& figures)
      : stage_(stage), options_(options), topic_(topic), figures_(figures) {}

  void run() {
    publish_limit();
    pg_limit("limit_pg_rows_per_s", Select::relays, 1);
    relay("mark");
    exactly_once();
    pg_limit("limit_pg_plain_select_rows_per_s", Select::plain, 1);
    pg_limit("limit_pg_two_connections_rows_per_s", Select::relays, 2);
    relay("delete");
  }

 private:
  void publish_limit() {
    const std::string topic = stage_.kafka().new_topic("limit", partitions);
    figures_.add("limit_publish_rows_per_s", publish_rate(stage_.kafka().bootstrap(), topic, options_.rows));
    stage_.kafka().delete_topic(topic);
  }

  void pg_limit(const char* figure, Select select, int connections) {
    stage_.copy_database("backlog", "round");
    figures_.add(figure, mark_rate(stage_, "round", select, connections));
    stage_.drop_database("round");
  }

  void relay(const std::string& after_sent) {
    stage_.copy_database("backlog", "round");
    stage_.kafka().create_topic(topic_, partitions);
    const Drained drained = drain(stage_, "round", topic_, options_.rows, {.after_sent = after_sent});
    stage_.drop_database("round");
    stage_.kafka().delete_topic(topic_);
    const bool mark = after_sent == "mark";
    figures_.add(mark ? "drain_rows_per_s" : "drain_delete_rows_per_s", options_.rows / drained.seconds);
    figures_.add(mark ? "cpu_s_per_million" : "cpu_s_per_million_delete",
                 drained.cpu_s / options_.rows * 1e6);
    figures_.add(mark ? "rss_peak_mib" : "rss_peak_delete_mib", drained.rss_peak_mib);
  }

  void exactly_once() {
    stage_.copy_database("backlog", "round");
    stage_.kafka().create_topic(topic_, partitions);
    const std::string ledger = outbox::test::KafkaCluster::unique_topic("ledger");
    const Drained drained =
        drain(stage_, "round", topic_, options_.rows,
              {.pipeline = "    delivery: exactly_once\n    ledger: { topic: " + ledger + " }\n"});
    stage_.drop_database("round");
    stage_.kafka().delete_topic(topic_);
    stage_.kafka().delete_topic(ledger);
    figures_.add("drain_exactly_once_rows_per_s", options_.rows / drained.seconds);
    figures_.add("cpu_s_per_million_exactly_once", drained.cpu_s / options_.rows * 1e6);
  }

  Stage& stage_;
  const Options& options_;
  const std::string& topic_;
  Figures& figures_;
};

}  // namespace

Drained drain(Stage& stage, const std::string& database, const std::string& topic, long long rows,
              const RelayOptions& options) {
  outbox::pg::Session watch = stage.session(database);
  Reader reader(stage.kafka().bootstrap(), topic);
  Relay relay(stage, database, options);
  const auto start = Clock::now();
  wait_for_end(relay, watch, reader, rows);
  const Drained drained{.seconds = std::chrono::duration<double>(Clock::now() - start).count(),
                        .cpu_s = relay.cpu_seconds(),
                        .rss_peak_mib = relay.rss_peak_mib()};
  relay.stop();
  check_drained(watch, rows, options.after_sent);
  return drained;
}

void measure_drain(Stage& stage, const Options& options, Figures& figures) {
  const std::string topic = outbox::test::KafkaCluster::unique_topic("bench");
  warm_up(stage, options);
  stage.make_database("backlog");
  {
    outbox::pg::Session session = stage.session("backlog");
    load_backlog(session, topic, options.rows);
  }
  for (int round = 1; round <= options.rounds; ++round) {
    figures.say("backlog of " + std::to_string(options.rows) + " rows, round " + std::to_string(round));
    Round(stage, options, topic, figures).run();
  }
  stage.drop_database("backlog");
  const double limit =
      std::min(figures.median("limit_publish_rows_per_s"), figures.median("limit_pg_rows_per_s"));
  figures.add("drain_ratio", figures.median("drain_rows_per_s") / limit);
  const double plain_limit = std::min(figures.median("limit_publish_rows_per_s"),
                                      figures.median("limit_pg_plain_select_rows_per_s"));
  figures.add("drain_ratio_plain_select", figures.median("drain_rows_per_s") / plain_limit);
  figures.add("exactly_once_ratio",
              figures.median("drain_exactly_once_rows_per_s") / figures.median("drain_rows_per_s"));
  figures.add("drain_delete_speedup",
              figures.median("drain_delete_rows_per_s") / figures.median("drain_rows_per_s"));
}

}  // namespace bench
