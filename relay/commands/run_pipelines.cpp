// The daemon: one loop, on it every pipeline with its database and its producer, and the signals that end it.

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "relay/commands/boot.hpp"
#include "relay/io/asio_loop.hpp"
#include "relay/io/kafka_broker.hpp"
#include "relay/io/postgres_source.hpp"
#include "relay/shell/pipeline.hpp"

namespace outbox::commands {
namespace {

constexpr int librdkafka_warning = 4;  // syslog levels

// Handed to librdkafka at once; further rows wait in the relay. More makes each message dearer (it falls out of the
// processor's caches), and no cluster needs more to be kept busy.
constexpr std::int32_t published_max = 5000;

struct Running {
  std::string name;
  std::unique_ptr<relay::Broker> broker;
  std::unique_ptr<relay::PostgresSource> source;
  std::unique_ptr<relay::Pipeline> pipeline;
};

relay::KafkaOptions kafka_options(const config::Pipeline& p, const log::Logger& logger) {
  relay::KafkaOptions options;
  options.properties = p.kafka;
  options.envelope = {.preset = p.publish.headers, .source = p.name};
  options.in_flight_messages_max = std::min(p.publish.in_flight_rows, published_max);
  options.on_log = [logger](int level, std::string_view facility, std::string_view text) {
    const log::Level as = level <= librdkafka_warning ? log::Level::warn : log::Level::debug;
    logger.write(as, "librdkafka", {{"facility", facility}, {"text", text}});
  };
  return options;
}

relay::PostgresSourceOptions source_options(const config::Pipeline& p, std::uint64_t seed) {
  relay::PostgresSourceOptions options;
  options.connect = {.uri = p.postgres.uri, .application_name = "outboxd " + p.name};
  options.table = pg::parse_table_name(p.source.table).value();
  options.connections = p.postgres.connections;
  options.statements = p.postgres.prepared == config::Prepared::named ? relay::Statements::prepared
                                                                      : relay::Statements::unnamed;
  options.deadline = p.postgres.statement_deadline;
  options.seed = seed;
  return options;
}

relay::PipelineOptions pipeline_options(const config::Config& config, const config::Pipeline& p) {
  relay::PipelineOptions options;
  options.name = p.name;
  options.owner =
      config.instance + "/" + p.name;  // two pipelines that reach one table by two URIs are two owners
  options.waking = p.source.mode == config::Mode::notify ? relay::Waking::notify : relay::Waking::poll;
  options.limits.lanes = p.source.lanes;
  options.limits.batch_rows = std::min(p.source.batch_rows, p.publish.in_flight_rows);
  options.limits.batch_bytes = p.source.batch_bytes;
  options.limits.in_flight_bytes = p.publish.in_flight_bytes;
  options.limits.in_flight_rows = p.publish.in_flight_rows;
  options.limits.poll_interval = p.source.poll_interval;
  options.limits.flat_rows = std::min(options.limits.flat_rows, options.limits.batch_rows);
  options.after_sent = p.source.after_sent;
  options.on_dead = p.source.on_dead;
  options.headers = p.publish.headers;
  options.lease_ttl = p.lease.ttl;
  options.stop_timeout = config.shutdown.timeout;
  options.mark_rows_max = p.source.batch_rows;
  return options;
}

class Daemon {
 public:
  Daemon(const config::Config& config, log::Logger logger) : config_(config), log_(std::move(logger)) {}

  ExitCode run() {
    for (const auto& p : config_.pipelines)
      if (!make(p)) return ExitCode::usage;
    for (Running& r : running_) r.pipeline->start();
    await_signal();
    context_.run();
    return ExitCode::ok;
  }

 private:
  bool make(const config::Pipeline& p) {
    const log::Logger log = log_.with("pipeline", p.name);
    auto broker = relay::KafkaBroker::make(context_, kafka_options(p, log));
    if (!broker) {
      log.error("kafka_properties_refused", {{"error", broker.error().text()}});
      return false;
    }
    const auto seed = std::hash<std::string>{}(config_.instance + p.name);
    auto source = std::make_unique<relay::PostgresSource>(context_, source_options(p, seed));
    auto pipeline =
        std::make_unique<relay::Pipeline>(pipeline_options(config_, p), loop_, *source, **broker, log);
    running_.push_back({p.name, std::move(*broker), std::move(source), std::move(pipeline)});
    return true;
  }

  void await_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      if (stopping_) {
        log_.warn("ended_at_once",
                  {{"signal", signal}, {"next", "what was in flight is sent again; consumers deduplicate"}});
        std::_Exit(static_cast<int>(ExitCode::failed));
      }
      stopping_ = true;
      log_.info("stop_requested", {{"signal", signal}});
      for (Running& r : running_) r.pipeline->stop([this] { one_stopped(); });
      await_signal();
    });
  }

  void one_stopped() {
    if (++stopped_ == running_.size()) signals_.cancel();
    if (stopped_ == running_.size()) context_.stop();
  }

  const config::Config& config_;
  log::Logger log_;
  boost::asio::io_context context_{1};
  relay::AsioLoop loop_{context_};
  boost::asio::signal_set signals_{context_, SIGTERM, SIGINT};
  std::vector<Running> running_;
  std::size_t stopped_ = 0;
  bool stopping_ = false;
};

}  // namespace

ExitCode run_pipelines(const config::Config& config, const log::Logger& logger) {
  return Daemon{config, logger}.run();
}

}  // namespace outbox::commands
