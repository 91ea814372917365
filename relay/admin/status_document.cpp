#include "relay/admin/status_document.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

namespace outbox::relay {
namespace {

using nlohmann::json;

double rounded(double value) {
  return std::round(value * 10) / 10;
}

json server_json(const std::optional<MonoTime>& down, const std::string& error, std::int64_t losses,
                 MonoTime now) {
  json out{{"up", !down}, {"losses", losses}};
  if (!down) return out;
  out["error"] = error;
  out["down_ms"] = std::chrono::duration_cast<Millis>(now - *down).count();
  return out;
}

json counters_json(const Counters& c) {
  return {{"claimed", c.claimed},    {"published", c.published}, {"acked", c.acked},
          {"marked", c.marked},      {"dead", c.dead},           {"held", c.held},
          {"dropped", c.dropped},    {"lane_lost", c.lane_lost}, {"replaced", c.replaced},
          {"producers", c.producers}};
}

json stopped_json(const std::vector<StoppedLane>& lanes) {
  json out = json::array();
  for (const StoppedLane& l : lanes)
    out.push_back({{"lane", l.lane.value}, {"stopped_ms", l.since.count()}, {"why", l.why}});
  return out;
}

// Null with at_least_once.
json transactions_json(const Figures& f) {
  if (!f.transactional) return {};
  return {{"committed", f.counters.transactions},
          {"failed", f.counters.transactions_failed},
          {"producers", f.counters.lane_producers_opened},
          {"lanes_stopped", stopped_json(f.stopped)}};
}

json topics_json(const std::vector<TopicFigures>& topics) {
  json out = json::array();
  for (const TopicFigures& t : topics) {
    out.push_back({{"topic", t.name},
                   {"state", t.state},
                   {"held", t.held},
                   {"careful", t.careful},
                   {"partitions", t.partitions},
                   {"waiting", t.waiting},
                   {"in_flight", t.in_flight},
                   {"acked", t.counters.acked},
                   {"dead", t.counters.dead}});
  }
  return out;
}

json lanes_json(const std::vector<LaneState>& lanes) {
  json out = json::array();
  for (const LaneState& l : lanes)
    out.push_back(
        {{"lane", l.lane}, {"owner", l.owner}, {"epoch", l.epoch}, {"remaining_ms", l.remaining.count()}});
  return out;
}

json holds_json(const std::vector<HoldState>& holds) {
  json out = json::array();
  for (const HoldState& h : holds) {
    json one{{"scope", h.scope}, {"topic", h.topic}, {"reason", h.reason}, {"age_ms", h.age.count()}};
    if (h.scope == "key") one["key"] = h.key;
    out.push_back(std::move(one));
  }
  return out;
}

json survey_json(const SurveyFigures& survey, MonoTime now) {
  json out{{"failed", survey.failed}, {"error", survey.error}};
  if (!survey.taken_at) return out;
  const SurveyFacts& f = survey.facts;
  out["age_ms"] = std::chrono::duration_cast<Millis>(now - *survey.taken_at).count();
  out["took_ms"] = std::chrono::duration_cast<Millis>(survey.took).count();
  out["pending"] = f.counts.pending + f.counts.due;
  out["scheduled"] = f.counts.scheduled;
  out["held"] = f.counts.held;
  out["dead"] = f.counts.dead;
  out["oldest_ms"] = f.oldest ? json(f.oldest->count()) : json();
  out["lanes"] = lanes_json(f.lanes);
  out["holds"] = holds_json(f.holds);
  out["holds_total"] = f.holds_total;
  out["dead_reasons"] = json::array();
  for (const DeadReason& d : f.dead)
    out["dead_reasons"].push_back({{"topic", d.topic}, {"reason", d.reason}, {"rows", d.rows}});
  out["partitions_ahead_ms"] = f.partitions_ahead ? json(f.partitions_ahead->count()) : json();
  out["xmin_age"] = f.xmin_age;
  return out;
}

json history_json(const History& history) {
  json rate = json::array(), p50 = json::array(), p99 = json::array(), pending = json::array();
  for (const HistorySample& s : history.samples()) {
    rate.push_back(rounded(s.sent_per_s));
    p50.push_back(rounded(s.p50_ms));
    p99.push_back(rounded(s.p99_ms));
    pending.push_back(s.pending);
  }
  return {{"step_ms", History::step.count()},
          {"sent_per_s", rate},
          {"p50_ms", p50},
          {"p99_ms", p99},
          {"pending", pending}};
}

json pipeline_json(const PipelineView& view, const History& history, MonoTime now) {
  const Figures& f = view.figures;
  json lanes = json::array();
  for (const Lease& lease : f.lanes)
    lanes.push_back({{"lane", lease.lane.value}, {"epoch", lease.epoch.value}});
  return {{"name", view.name},
          {"phase", f.phase},
          {"verdict", to_string(f.judgement.verdict)},
          {"reason", f.judgement.reason},
          {"postgres",
           server_json(f.health.postgres_down, f.health.postgres_error, f.health.postgres_losses, now)},
          {"kafka", server_json(f.health.kafka_down, f.health.kafka_error, f.health.kafka_losses, now)},
          {"totals", counters_json(f.counters)},
          {"in_flight", {{"rows", f.flight_rows}, {"bytes", f.flight_bytes}}},
          {"deferred", {{"rows", f.health.rows_deferred}, {"full", f.health.deferred_full}}},
          {"asleep", f.asleep},
          {"transactions", transactions_json(f)},
          {"lanes_held", std::move(lanes)},
          {"lease_left_ms", f.lease_left ? json(f.lease_left->count()) : json()},
          {"topics", topics_json(f.topics)},
          {"table", survey_json(view.survey, now)},
          {"history", history_json(history)}};
}

}  // namespace

std::string status_document(const StatusInput& input) {
  json out{{"version", input.process.version},
           {"librdkafka", input.process.librdkafka},
           {"instance", input.instance},
           {"time", rfc3339(input.now)},
           {"started_at", input.process.started_at},
           {"pipelines", json::array()},
           {"log", json::array()}};
  for (std::size_t i = 0; i < input.pipelines.size(); ++i)
    out["pipelines"].push_back(pipeline_json(input.pipelines[i], input.histories[i], input.mono));
  for (const log::RecentLine& l : input.log)
    out["log"].push_back({{"time", rfc3339(l.at)}, {"level", log::to_string(l.level)}, {"line", l.line}});
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace outbox::relay
