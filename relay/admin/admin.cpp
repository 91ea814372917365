#include "relay/admin/admin.hpp"

#include <utility>

#include "relay/admin/history.hpp"
#include "relay/admin/status_document.hpp"
#include "relay/admin/status_page.hpp"
#include "relay/metrics/collect.hpp"

namespace outbox::relay {
namespace {

constexpr int ok = 200;
constexpr int not_found = 404;
constexpr int unavailable = 503;

}  // namespace

Admin::Admin(boost::asio::io_context& context, Loop& loop, AdminOptions options,
             std::vector<AdminSubject> subjects, const log::Recent& recent, log::Logger log)
    : loop_(loop),
      options_(std::move(options)),
      subjects_(std::move(subjects)),
      histories_(subjects_.size()),
      recent_(recent),
      log_(std::move(log)),
      server_(context, options_.listen, options_.limits,
              [this](std::string_view target, std::string_view accept) { return answer(target, accept); }) {}

Admin::~Admin() {
  stop();
}

void Admin::start() {
  server_.start([this](const Status& status) {
    if (status)
      log_.info("admin_listening", {{"address", to_string(options_.listen)}});
    else
      log_.warn("admin_unavailable",
                {{"error", status.error().text()}, {"next", "tried again; the relay works on"}});
  });
  sample();
}

void Admin::stop() {
  *alive_ = false;
  server_.stop();
}

void Admin::topics_max(std::size_t topics) {
  options_.topics_max = topics;
}

// One sample a step for the charts, whether or not anybody looks.
void Admin::sample() {
  const MonoTime now = loop_.now();
  for (std::size_t i = 0; i < subjects_.size(); ++i) {
    const Figures figures = subjects_[i].pipeline->figures(0);
    const Counts& counts = subjects_[i].survey->figures().facts.counts;
    histories_[i].note(now, figures.counters.marked, figures.timings->created_to_ack,
                       counts.pending + counts.due);
  }
  loop_.at(now + History::step, [this, alive = alive_] {
    if (*alive) sample();
  });
}

std::vector<PipelineView> Admin::views() const {
  std::vector<PipelineView> out;
  out.reserve(subjects_.size());
  for (const AdminSubject& subject : subjects_)
    out.push_back({subject.name, subject.pipeline->figures(options_.topics_max), subject.survey->figures(),
                   subject.source->upkeep(), subject.broker->statistics()});
  return out;
}

HttpAnswer Admin::metrics(std::string_view accept) {
  ProcessFigures process = options_.process;
  process.warnings = recent_.warnings();
  process.errors = recent_.errors();
  process.requests = server_.totals().answered;
  process.refused = server_.totals().refused;
  Exposition out;
  collect(process, out);
  for (const PipelineView& view : views()) collect(view, loop_.now(), out);
  const ExpositionFormat format = format_accepted(accept);
  return {.status = ok, .content_type = content_type(format), .body = out.text(format)};
}

HttpAnswer Admin::readiness() {
  HttpAnswer out{.status = ok, .body = ""};
  for (const AdminSubject& subject : subjects_) {
    const Judgement judgement = subject.pipeline->judgement();
    if (!is_well(judgement.verdict)) out.status = unavailable;
    out.body.append(subject.name).append(": ").append(to_string(judgement.verdict));
    if (!judgement.reason.empty()) out.body.append(": ").append(judgement.reason);
    out.body.append("\n");
  }
  return out;
}

HttpAnswer Admin::status() {
  const std::vector<PipelineView> all = views();
  const auto lines = recent_.lines();
  return {.status = ok,
          .content_type = "application/json",
          .body = status_document({.process = options_.process,
                                   .instance = options_.instance,
                                   .now = loop_.wall(),
                                   .mono = loop_.now(),
                                   .pipelines = all,
                                   .histories = histories_,
                                   .log = lines})};
}

HttpAnswer Admin::answer(std::string_view target, std::string_view accept) {
  if (target == "/metrics") return metrics(accept);
  if (target == "/readyz") return readiness();
  if (target == "/healthz") return {.status = ok, .body = "alive\n"};
  if (target == "/status") return status();
  if (target == "/")
    return {.status = ok, .content_type = "text/html; charset=utf-8", .body = std::string{status_page}};
  return {.status = not_found, .body = "there are /, /metrics, /healthz, /readyz and /status\n"};
}

}  // namespace outbox::relay
