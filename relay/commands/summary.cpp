#include "relay/commands/summary.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace outbox::commands {

Summary::Summary(relay::Loop& loop, Millis every, std::vector<SummarySubject> subjects, log::Logger log)
    : loop_(loop),
      every_(every),
      subjects_(std::move(subjects)),
      told_(subjects_.size()),
      log_(std::move(log)) {}

Summary::~Summary() {
  *alive_ = false;
}

void Summary::start() {
  told_at_ = loop_.now();
  loop_.at(told_at_ + every_, [this, alive = alive_] {
    if (*alive) tell();
  });
}

void Summary::tell() {
  const double seconds = std::chrono::duration<double>(loop_.now() - told_at_).count();
  for (std::size_t i = 0; i < subjects_.size(); ++i)
    tell_of(subjects_[i], told_[i], std::max(seconds, 0.001));
  log_.tell_repeats();
  start();
}

void Summary::tell_of(const SummarySubject& subject, Told& told, double seconds) {
  const relay::Figures now = subject.pipeline->figures(0);
  const relay::Counters before = std::exchange(told.counters, now.counters);
  const relay::Histogram latest =
      now.timings->created_to_ack.since(std::exchange(told.created_to_ack, now.timings->created_to_ack));
  const std::int64_t sent = now.counters.marked - before.marked;
  const std::int64_t dead = now.counters.dead - before.dead;
  const std::int64_t held = now.counters.held - before.held;
  const relay::SurveyFigures& survey = subject.survey->figures();
  const std::int64_t pending = survey.facts.counts.pending + survey.facts.counts.due;
  if (sent == 0 && dead == 0 && held == 0 && now.flight_rows == 0 && pending == 0) return;
  const log::Logger log = log_.with("pipeline", subject.name);
  const double rate = std::round(static_cast<double>(sent) / seconds * 10) / 10;
  const std::string_view verdict = to_string(now.judgement.verdict);
  if (survey.taken_at)
    log.info("summary", {{"sent", sent},
                         {"per_s", rate},
                         {"p50", latest.quantile(0.5)},
                         {"p99", latest.quantile(0.99)},
                         {"in_flight", now.flight_rows},
                         {"dead", dead},
                         {"held", held},
                         {"verdict", verdict},
                         {"pending", pending},
                         {"oldest", survey.facts.oldest.value_or(Millis{0})}});
  else  // what waits in the table is counted for the admin endpoint alone
    log.info("summary", {{"sent", sent},
                         {"per_s", rate},
                         {"p50", latest.quantile(0.5)},
                         {"p99", latest.quantile(0.99)},
                         {"in_flight", now.flight_rows},
                         {"dead", dead},
                         {"held", held},
                         {"verdict", verdict}});
}

}  // namespace outbox::commands
