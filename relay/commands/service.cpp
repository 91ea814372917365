#include "relay/commands/service.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace outbox::commands {
namespace {

constexpr Millis tick_every{1000};
constexpr Millis status_every{5000};
constexpr Micros more_time{30'000'000};  // asked for again and again while a server is known to be away
constexpr Millis stop_slack{10'000};

using relay::Verdict;

std::string age(std::optional<Millis> oldest) {
  if (!oldest) return "";
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), ", oldest %.1f s", static_cast<double>(oldest->count()) / 1000);
  return text.data();
}

}  // namespace

Service::Service(relay::Loop& loop, relay::ServiceNotify notify, std::vector<ServiceSubject> subjects,
                 log::Logger log)
    : loop_(loop),
      notify_(std::move(notify)),
      subjects_(std::move(subjects)),
      marked_(subjects_.size(), 0),
      log_(std::move(log)) {}

Service::~Service() {
  *alive_ = false;
}

void Service::start() {
  status_at_ = loop_.now();
  if (notify_.active()) tick();
}

bool Service::works() const {
  return std::ranges::all_of(subjects_, [](const ServiceSubject& s) {
    return is_well(s.pipeline->judgement().verdict) && s.broker->answered() &&
           !s.pipeline->figures(0).health.kafka_down;
  });
}

void Service::feed(bool stuck) {
  if (!stuck) notify_.watchdog();
  if (stuck == std::exchange(starving_, stuck) || !stuck || !notify_.watchdog_after()) return;
  const auto patience = std::chrono::duration_cast<Millis>(*notify_.watchdog_after());
  log_.error("stuck",
             {{"next", "unless it makes progress, systemd restarts the service"}, {"after", patience}});
}

void Service::tick() {
  const bool stuck = std::ranges::any_of(
      subjects_, [](const ServiceSubject& s) { return s.pipeline->judgement().verdict == Verdict::stuck; });
  feed(stuck);
  if (!ready_ && !stopping_ && works()) {
    ready_ = true;
    log_.info("ready");
    notify_.ready();
  } else if (!ready_ && !stuck) {
    notify_.extend(more_time);
  }
  const MonoTime now = loop_.now();
  if (now - status_at_ >= status_every || status_.empty()) {
    std::string text = lag();
    status_at_ = now;
    if (text != std::exchange(status_, text)) notify_.status(status_);
  }
  const auto half = notify_.watchdog_after().value_or(tick_every * 2) / 2;
  loop_.at(now + std::min<Micros>(tick_every, half), [this, alive = alive_] {
    if (*alive) tick();
  });
}

// "payments: 1234/s, pending 56, oldest 1.2 s; refunds: waiting: Kafka is away for 12 s"
std::string Service::lag() {
  const double seconds = std::max(1.0, std::chrono::duration<double>(loop_.now() - status_at_).count());
  std::string out;
  for (std::size_t i = 0; i < subjects_.size(); ++i) {
    const ServiceSubject& s = subjects_[i];
    const relay::Judgement judgement = s.pipeline->judgement();
    const std::int64_t marked = s.pipeline->counters().marked;
    const auto rate =
        static_cast<std::int64_t>(static_cast<double>(marked - std::exchange(marked_[i], marked)) / seconds);
    out += (out.empty() ? "" : "; ") + s.name + ": ";
    if (judgement.verdict != Verdict::ready) {
      out += std::string{to_string(judgement.verdict)} + ": " + judgement.reason;
      continue;
    }
    out += s.pipeline->phase() == relay::Pipeline::Phase::working ? std::to_string(rate) + "/s" : "standby";
    const relay::SurveyFigures& survey = s.survey->figures();
    if (!survey.taken_at) continue;
    out += ", pending " + std::to_string(survey.facts.counts.pending + survey.facts.counts.due) +
           age(survey.facts.oldest);
    if (survey.facts.counts.dead > 0) out += ", dead " + std::to_string(survey.facts.counts.dead);
  }
  return out;
}

void Service::stopping(Millis at_most) {
  stopping_ = true;
  notify_.stopping();
  notify_.extend(at_most + stop_slack);
}

void Service::reload(const std::function<void()>& reload) {
  notify_.reloading();
  reload();
  if (ready_) notify_.ready();
}

}  // namespace outbox::commands
