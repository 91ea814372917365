#pragma once
// What a running relay shows of itself: /metrics, /healthz, /readyz, /status and a page. It reads figures
// that the loop's thread owns, on that thread, so a scrape sees one moment and the money path pays nothing
// between scrapes. Lifecycle: constructed → start() → stop(), before the pipelines go. Thread: the loop's.

#include <memory>
#include <string>
#include <vector>

#include "relay/http/http_server.hpp"
#include "relay/kafka/broker.hpp"
#include "relay/log/recent.hpp"
#include "relay/metrics/process_figures.hpp"
#include "relay/postgres/postgres_source.hpp"
#include "relay/postgres/survey.hpp"
#include "relay/shell/pipeline.hpp"

namespace outbox::relay {

struct AdminOptions {
  ListenAddress listen{};
  HttpLimits limits{};
  std::string instance{};
  std::size_t topics_max = 100;
  ProcessFigures process{};  ///< versions and start; the rest is filled in at a scrape
};

/// What it shows; all of it outlives the Admin.
struct AdminSubject {
  std::string name{};
  const Pipeline* pipeline = nullptr;
  const Survey* survey = nullptr;
  const PostgresSource* source = nullptr;
  const KafkaBroker* broker = nullptr;
};

struct PipelineView;
class History;

class Admin {
 public:
  Admin(boost::asio::io_context& context, Loop& loop, AdminOptions options,
        std::vector<AdminSubject> subjects, const log::Recent& recent, log::Logger log);
  ~Admin();
  Admin(const Admin&) = delete;
  Admin& operator=(const Admin&) = delete;

  void start();
  void stop();
  void topics_max(std::size_t topics);
  /// `accept`: what the asker takes; it chooses the format of /metrics.
  [[nodiscard]] HttpAnswer answer(std::string_view target, std::string_view accept);

 private:
  [[nodiscard]] HttpAnswer metrics(std::string_view accept);
  [[nodiscard]] HttpAnswer readiness();
  [[nodiscard]] HttpAnswer status();
  [[nodiscard]] std::vector<PipelineView> views() const;
  void sample();

  Loop& loop_;
  AdminOptions options_;
  std::vector<AdminSubject> subjects_;
  std::vector<History> histories_;
  const log::Recent& recent_;
  log::Logger log_;
  HttpServer server_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // its timer outlives nobody
};

}  // namespace outbox::relay
