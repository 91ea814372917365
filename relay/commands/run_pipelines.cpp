// The daemon: one loop, on it every pipeline with its database and its producer, what shows them, and the
// signals that end it or have its file read again.

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pg/session.hpp"
#include "relay/admin/admin.hpp"
#include "relay/commands/boot.hpp"
#include "relay/commands/configured.hpp"
#include "relay/commands/credentials.hpp"
#include "relay/commands/service.hpp"
#include "relay/commands/summary.hpp"
#include "relay/commands/topic_options.hpp"
#include "relay/commands/upkeep_log.hpp"
#include "relay/commands/value_checks.hpp"
#include "relay/config/changes.hpp"
#include "relay/host/asio_loop.hpp"
#include "relay/kafka/broker.hpp"
#include "relay/kafka/transactor.hpp"
#include "relay/postgres/postgres_source.hpp"
#include "relay/postgres/survey.hpp"
#include "relay/shell/pipeline.hpp"

namespace outbox::commands {
namespace {

constexpr int librdkafka_warning = 4;  // syslog levels
constexpr std::size_t recent_lines = 50;
constexpr std::size_t faults_logged_max = 20;

// Handed to librdkafka at once; further rows wait in the relay. More makes each message dearer (it falls out
// of the processor's caches), and no cluster needs more to be kept busy.
constexpr std::int32_t published_max = 5000;
constexpr std::int64_t batch_bytes_min = 64 << 10;

struct Running {
  std::string name;
  std::unique_ptr<relay::KafkaBroker> broker;
  std::unique_ptr<relay::KafkaTransactor> transactor;  // exactly once
  std::unique_ptr<relay::PostgresSource> source;
  std::unique_ptr<relay::Pipeline> pipeline;
  std::unique_ptr<relay::Survey> survey;
  std::map<std::string, std::string> kafka;  // the properties that the producer has
  std::size_t kafka_files = 0;               // the digest of the files that they name
};

relay::KafkaOptions kafka_options(const config::Config& config, const config::Pipeline& p,
                                  const log::Logger& logger) {
  relay::KafkaOptions options;
  options.properties = p.kafka;
  options.envelope = {.preset = p.publish.headers, .tracestate = p.publish.tracestate, .source = p.name};
  options.topics = topic_map(p.topics).value();
  for (const config::Pipeline& each : config.pipelines) options.topics.reserve(ledger_topic(each));
  options.create = topic_creation(p.topics).value();
  // The pipeline keeps to published_max; behind it there is room for what partitions that are away hold.
  options.in_flight_messages_max = 4 * published_max;
  options.on_log = [logger](int level, std::string_view facility, std::string_view text) {
    const log::Level as = level <= librdkafka_warning ? log::Level::warn : log::Level::debug;
    logger.write(as, "librdkafka", {{"facility", facility}, {"text", text}});
  };
  return options;
}

std::unique_ptr<relay::KafkaTransactor> make_transactor(boost::asio::io_context& context,
                                                        const config::Config& config,
                                                        const config::Pipeline& p,
                                                        const log::Logger& logger) {
  if (p.delivery != config::Delivery::exactly_once) return nullptr;
  relay::KafkaTransactorOptions options;
  options.kafka = kafka_options(config, p, logger);
  options.kafka.in_flight_messages_max = published_max;
  options.pipeline = p.name;
  options.ledger_topic = ledger_topic(p);
  return std::make_unique<relay::KafkaTransactor>(context, std::move(options));
}

relay::UpkeepOptions upkeep_options(const config::Retention& r, const log::Logger& logger) {
  return {.partitions_ahead = r.partitions_ahead,
          .old_rows = r.old_rows,
          .replay_window = r.replay_window,
          .every = r.every,
          .on_note = [logger](const relay::UpkeepNote& note) { write_note(logger, note); }};
}

relay::PostgresSourceOptions source_options(const config::Pipeline& p, std::uint64_t seed,
                                            const log::Logger& logger) {
  relay::PostgresSourceOptions options;
  options.connect = {.uri = p.postgres.uri, .application_name = "outboxd " + p.name};
  options.table = pg::parse_table_name(p.source.table).value();
  options.partition_column = partition_column_of(p);
  options.connections = p.postgres.connections;
  options.statements = p.postgres.prepared == config::Prepared::named ? relay::Statements::prepared
                                                                      : relay::Statements::unnamed;
  options.deadline = p.postgres.statement_deadline;
  options.upkeep = upkeep_options(p.retention, logger);
  options.seed = seed;
  return options;
}

relay::SurveyOptions survey_options(const config::Config& config, const config::Pipeline& p,
                                    std::uint64_t seed) {
  relay::SurveyOptions options;
  options.connect = {.uri = p.postgres.uri, .application_name = "outboxd " + p.name + " survey"};
  options.table = pg::parse_table_name(p.source.table).value();
  options.prepared = p.postgres.prepared == config::Prepared::named;
  options.every = config.admin.survey_interval;
  options.seed = seed;
  return options;
}

relay::AdminOptions admin_options(const config::Config& config) {
  relay::AdminOptions options;
  options.listen = relay::parse_listen_address(config.admin.listen).value();
  options.instance = config.instance;
  options.topics_max = static_cast<std::size_t>(config.admin.topics_max);
  options.process.version = OUTBOX_VERSION;
  options.process.librdkafka = relay::KafkaBroker::library_version();
  options.process.libpq = pg::libpq_version();
  options.process.started_at =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return options;
}

// A lane whose transaction waits for a partition that is away keeps its rows: the others must still have
// room.
void share_out(relay::ClaimLimits& limits) {
  limits.batch_rows = std::min(limits.batch_rows, relay::ledger_rows_max);
  const std::int64_t lanes = limits.lanes + 1;
  limits.in_flight_rows = std::max(limits.in_flight_rows, lanes * limits.batch_rows);
  limits.batch_bytes =
      std::min(limits.batch_bytes, std::max(limits.in_flight_bytes / lanes, batch_bytes_min));
}

relay::PipelineOptions pipeline_options(const config::Config& config, const config::Pipeline& p) {
  relay::PipelineOptions options;
  options.name = p.name;
  options.owner =
      config.instance + "/" + p.name;  // two pipelines that reach one table by two URIs are two owners
  options.waking = p.source.mode == config::Mode::notify ? relay::Waking::notify : relay::Waking::poll;
  options.published_max = std::min(p.publish.in_flight_rows, published_max);
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
  options.max_attempts = p.publish.max_attempts;
  options.partition_header = p.publish.partition_header;
  options.lease_ttl = p.lease.ttl;
  options.stop_timeout = config.shutdown.timeout;
  options.mark_rows_max = p.source.batch_rows;
  if (p.delivery == config::Delivery::exactly_once) share_out(options.limits);
  return options;
}

class Daemon {
 public:
  Daemon(config::Config config, std::string file, const log::Logger& logger)
      : config_(std::move(config)),
        file_(std::move(file)),
        log_(logger
                 .copied_to([this](log::Level level, const std::string& line) {
                   recent_.add(level, line, loop_.wall());
                 })
                 .limited({}, [this] { return loop_.now(); })) {}

  ExitCode run() {
    for (const auto& p : config_.pipelines)
      if (!make(p)) return ExitCode::usage;
    for (Running& r : running_) r.pipeline->start();
    show();
    serve();
    summarise();
    await_signal();
    context_.run();
    return ExitCode::ok;
  }

 private:
  bool make(const config::Pipeline& p) {
    const log::Logger log = log_.with("pipeline", p.name);
    auto broker = relay::KafkaBroker::make(context_, kafka_options(config_, p, log));
    if (!broker) {
      log.error("kafka_properties_refused", {{"error", broker.error().text()}});
      return false;
    }
    const auto seed = std::hash<std::string>{}(config_.instance + p.name);
    auto source = std::make_unique<relay::PostgresSource>(context_, source_options(p, seed, log));
    auto transactor = make_transactor(context_, config_, p, log);
    auto pipeline = std::make_unique<relay::Pipeline>(pipeline_options(config_, p), loop_, *source, **broker,
                                                      log, transactor.get());
    auto survey = std::make_unique<relay::Survey>(context_, survey_options(config_, p, seed + 1));
    running_.push_back({p.name, std::move(*broker), std::move(transactor), std::move(source),
                        std::move(pipeline), std::move(survey), p.kafka, digest_of_files(p.kafka)});
    return true;
  }

  void show() {
    relay::AdminOptions options = admin_options(config_);
    if (std::holds_alternative<relay::NoAddress>(options.listen)) return;
    std::vector<relay::AdminSubject> subjects;
    for (Running& r : running_) {
      subjects.push_back({r.name, r.pipeline.get(), r.survey.get(), r.source.get(), r.broker.get()});
      r.survey->start();
    }
    admin_ = std::make_unique<relay::Admin>(context_, loop_, std::move(options), std::move(subjects), recent_,
                                            log_);
    admin_->start();
  }

  void serve() {
    std::vector<ServiceSubject> subjects;
    subjects.reserve(running_.size());
    for (Running& r : running_)
      subjects.push_back({r.name, r.pipeline.get(), r.broker.get(), r.survey.get()});
    service_ =
        std::make_unique<Service>(loop_, relay::ServiceNotify::from_environment(), std::move(subjects), log_);
    service_->start();
  }

  void summarise() {
    std::vector<SummarySubject> subjects;
    subjects.reserve(running_.size());
    for (Running& r : running_) subjects.push_back({r.name, r.pipeline.get(), r.survey.get()});
    summary_ = std::make_unique<Summary>(loop_, config_.log.summary_interval, std::move(subjects), log_);
    summary_->start();
  }

  void reload() {
    if (stopping_) return;
    const auto loaded = config::load_file(file_, config::process_surroundings());
    const config::Faults faults = loaded ? value_faults(*loaded) : loaded.error();
    for (std::size_t i = 0; i < std::min(faults.size(), faults_logged_max); ++i)
      log_.error("reload_refused", {{"fault", faults[i].text(file_)}, {"next", "nothing was changed"}});
    if (!faults.empty()) return;
    const std::vector<std::string> credentials = take_credentials(config_, loaded->config);
    const config::Changes changed = config::changes(config_, loaded->config);
    config_ = config::with_live(std::move(config_), loaded->config);
    apply();
    renew();
    for (const std::string& option : changed.restart)
      log_.warn("needs_restart", {{"option", option}, {"next", "what runs keeps its value until then"}});
    std::string live;
    for (const auto& options : {changed.live, credentials})
      for (const std::string& option : options) live.append(live.empty() ? "" : " ").append(option);
    log_.info("reloaded", {{"changed", live}, {"needs_restart", changed.restart.size()}});
  }

  // Every option that the table marks as live.
  void apply() {
    log_.set_lowest(static_cast<log::Level>(config_.log.level));
    if (admin_) admin_->topics_max(static_cast<std::size_t>(config_.admin.topics_max));
    if (summary_) summary_->every(config_.log.summary_interval);
    for (Running& r : running_) r.survey->every(config_.admin.survey_interval);
  }

  // PostgreSQL's are used from the next connect on; Kafka's need another producer.
  void renew() {
    for (Running& r : running_) {
      const auto& now = *std::ranges::find(config_.pipelines, r.name, &config::Pipeline::name);
      r.source->set_uri(now.postgres.uri);
      r.survey->set_uri(now.postgres.uri);
      const std::size_t files = digest_of_files(now.kafka);
      if (now.kafka == r.kafka && files == r.kafka_files) continue;
      r.kafka = now.kafka;
      r.kafka_files = files;
      if (r.transactor) r.transactor->renew(now.kafka);
      r.broker->renew(now.kafka, [log = log_.with("pipeline", r.name)](const Status& status) {
        if (status) return log.info("kafka_credentials_renewed");
        log.error("kafka_credentials_refused",
                  {{"error", status.error().text()}, {"next", "the producer that runs keeps the old ones"}});
      });
    }
  }

  void await_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      if (signal == SIGHUP) {
        service_->reload([this] { reload(); });
        return await_signal();
      }
      if (stopping_) {
        log_.warn("ended_at_once",
                  {{"signal", signal}, {"next", "what was in flight is sent again; consumers deduplicate"}});
        std::_Exit(static_cast<int>(ExitCode::failed));
      }
      stopping_ = true;
      log_.info("stop_requested", {{"signal", signal}});
      service_->stopping(config_.shutdown.timeout);
      for (Running& r : running_) r.pipeline->stop([this] { one_stopped(); });
      await_signal();
    });
  }

  void one_stopped() {
    if (++stopped_ < running_.size()) return;
    signals_.cancel();
    if (admin_) admin_->stop();
    for (Running& r : running_) r.survey->stop();
    context_.stop();
  }

  config::Config config_;
  const std::string file_;
  boost::asio::io_context context_{1};
  relay::AsioLoop loop_{context_};
  log::Recent recent_{recent_lines};
  log::Logger log_;
  boost::asio::signal_set signals_{context_, SIGTERM, SIGINT, SIGHUP};
  std::vector<Running> running_;
  std::unique_ptr<relay::Admin> admin_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Summary> summary_;
  std::size_t stopped_ = 0;
  bool stopping_ = false;
};

}  // namespace

ExitCode run_pipelines(const config::Config& config, const std::string& file, const log::Logger& logger) {
  return Daemon{config, file, logger}.run();
}

}  // namespace outbox::commands
