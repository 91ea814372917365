#include "relay/metrics/collect.hpp"

#include <array>
#include <string>

namespace outbox::relay {
namespace {

constexpr std::array<std::string_view, 5> phases{"standby", "working", "draining", "stopping", "stopped"};

double seconds(std::chrono::nanoseconds t) {
  return std::chrono::duration<double>(t).count();
}

void collect_health(std::string_view name, const Figures& f, Exposition& out) {
  out.add(metric("outboxd_ready"), {name}, is_well(f.judgement.verdict));
  out.add(metric("outboxd_paused"), {name}, f.judgement.verdict == Verdict::paused);
  out.add(metric("outboxd_stuck"), {name}, f.judgement.verdict == Verdict::stuck);
  for (const auto phase : phases) out.add(metric("outboxd_phase"), {name, phase}, phase == f.phase);
  out.add(metric("outboxd_postgres_up"), {name}, !f.health.postgres_down);
  out.add(metric("outboxd_postgres_losses_total"), {name}, f.health.postgres_losses);
  out.add(metric("outboxd_kafka_up"), {name}, !f.health.kafka_down);
  out.add(metric("outboxd_kafka_losses_total"), {name}, f.health.kafka_losses);
}

void collect_kafka(std::string_view name, const KafkaStatistics& s, Exposition& out) {
  out.add(metric("outboxd_producer_queue_messages"), {name}, s.queued_messages);
  out.add(metric("outboxd_producer_queue_bytes"), {name}, s.queued_bytes);
  for (const BrokerStatistics& b : s.brokers) {
    out.add(metric("outboxd_broker_up"), {name, b.name}, b.up);
    out.add(metric("outboxd_broker_round_trip_seconds"), {name, b.name}, seconds(b.round_trip_mean));
    out.add(metric("outboxd_broker_round_trip_p99_seconds"), {name, b.name}, seconds(b.round_trip_p99));
    out.add(metric("outboxd_broker_queued_p99_seconds"), {name, b.name}, seconds(b.queued_p99));
    out.add(metric("outboxd_broker_waiting_requests"), {name, b.name}, b.waiting_requests);
    out.add(metric("outboxd_broker_request_errors_total"), {name, b.name}, b.request_errors);
    out.add(metric("outboxd_broker_request_timeouts_total"), {name, b.name}, b.request_timeouts);
    out.add(metric("outboxd_broker_request_retries_total"), {name, b.name}, b.request_retries);
    out.add(metric("outboxd_broker_connects_total"), {name, b.name}, b.connects);
  }
}

void collect_lanes(std::string_view name, const Figures& f, Exposition& out) {
  out.add(metric("outboxd_lanes_held"), {name}, std::ssize(f.lanes));
  for (const Lease& lease : f.lanes)
    out.add(metric("outboxd_lane_epoch"), {name, std::to_string(lease.lane.value)}, lease.epoch.value);
  out.add(metric("outboxd_lease_left_seconds"), {name}, seconds(f.lease_left.value_or(Millis{0})));
  out.add(metric("outboxd_lanes_taken_total"), {name}, f.counters.lanes_taken);
  out.add(metric("outboxd_lanes_lost_total"), {name}, f.counters.lanes_lost);
  out.add(metric("outboxd_lane_lost_rows_total"), {name}, f.counters.lane_lost);
  out.add(metric("outboxd_replaced_rows_total"), {name}, f.counters.replaced);
}

void collect_rows(std::string_view name, const Figures& f, Exposition& out) {
  const Counters& c = f.counters;
  out.add(metric("outboxd_claims_total"), {name}, c.claims);
  out.add(metric("outboxd_claims_failed_total"), {name}, c.claims_failed);
  out.add(metric("outboxd_due_locked_total"), {name}, c.due_locked);
  out.add(metric("outboxd_claim_seconds"), {name}, f.timings->claim);
  out.add(metric("outboxd_claimed_rows_total"), {name}, c.claimed);
  out.add(metric("outboxd_dropped_rows_total"), {name}, c.dropped);
  out.add(metric("outboxd_held_rows_total"), {name}, c.held);
  out.add(metric("outboxd_claim_to_ack_seconds"), {name}, f.timings->claim_to_ack);
  out.add(metric("outboxd_created_to_ack_seconds"), {name}, f.timings->created_to_ack);
  out.add(metric("outboxd_marks_total"), {name}, c.marks);
  out.add(metric("outboxd_marks_failed_total"), {name}, c.marks_failed);
  out.add(metric("outboxd_mark_seconds"), {name}, f.timings->mark);
  out.add(metric("outboxd_marked_rows_total"), {name}, c.marked);
  out.add(metric("outboxd_in_flight_rows"), {name}, f.flight_rows);
  out.add(metric("outboxd_in_flight_bytes"), {name}, f.flight_bytes);
  out.add(metric("outboxd_deferred_rows"), {name}, f.health.rows_deferred);
  out.add(metric("outboxd_deferred_full"), {name}, f.health.deferred_full);
  out.add(metric("outboxd_producers_total"), {name}, c.producers);
  out.add(metric("outboxd_notifications_total"), {name}, c.hints);
  out.add(metric("outboxd_asleep"), {name}, f.asleep);
}

void collect_transactions(std::string_view name, const Figures& f, Exposition& out) {
  if (!f.transactional) return;
  out.add(metric("outboxd_transactions_total"), {name}, f.counters.transactions);
  out.add(metric("outboxd_transactions_failed_total"), {name}, f.counters.transactions_failed);
  out.add(metric("outboxd_transactional_producers_total"), {name}, f.counters.lane_producers_opened);
  out.add(metric("outboxd_lanes_stopped"), {name}, std::ssize(f.stopped));
  for (const StoppedLane& lane : f.stopped)
    out.add(metric("outboxd_lane_stopped_seconds"), {name, std::to_string(lane.lane.value)},
            seconds(lane.since));
}

void collect_topics(std::string_view name, const Figures& f, Exposition& out) {
  for (const TopicFigures& t : f.topics) {
    out.add(metric("outboxd_published_total"), {name, t.name}, t.counters.published);
    out.add(metric("outboxd_acked_total"), {name, t.name}, t.counters.acked);
    out.add(metric("outboxd_dead_total"), {name, t.name}, t.counters.dead);
    out.add(metric("outboxd_topic_held"), {name, t.name}, t.held);
    out.add(metric("outboxd_topic_partitions_away"), {name, t.name}, t.partitions_away);
    out.add(metric("outboxd_topic_careful"), {name, t.name}, t.careful);
    out.add(metric("outboxd_topic_partitions"), {name, t.name}, static_cast<std::int64_t>(t.partitions));
    out.add(metric("outboxd_topic_waiting_rows"), {name, t.name}, t.waiting);
  }
}

void collect_survey(std::string_view name, const SurveyFigures& s, MonoTime now, Exposition& out) {
  out.add(metric("outboxd_surveys_failed_total"), {name}, s.failed);
  if (!s.taken_at) return;
  const SurveyFacts& facts = s.facts;
  out.add(metric("outboxd_survey_age_seconds"), {name}, seconds(now - *s.taken_at));
  out.add(metric("outboxd_survey_seconds"), {name}, seconds(s.took));
  out.add(metric("outboxd_pending_rows"), {name}, facts.counts.pending + facts.counts.due);
  out.add(metric("outboxd_scheduled_rows"), {name}, facts.counts.scheduled);
  out.add(metric("outboxd_held_rows"), {name}, facts.counts.held);
  out.add(metric("outboxd_dead_rows"), {name}, facts.counts.dead);
  out.add(metric("outboxd_oldest_pending_age_seconds"), {name}, seconds(facts.oldest.value_or(Millis{0})));
  out.add(metric("outboxd_holds"), {name}, facts.holds_total);
  if (facts.partitions_ahead)
    out.add(metric("outboxd_partitions_ahead_seconds"), {name}, seconds(*facts.partitions_ahead));
  out.add(metric("outboxd_default_partition_bytes"), {name}, facts.default_partition_bytes);
  out.add(metric("outboxd_xmin_age_transactions"), {name}, facts.xmin_age);
  out.add(metric("outboxd_notify_queue_ratio"), {name}, facts.notify_queue);
  if (facts.horizon && facts.horizon->open.value_or(holder_shown_after) >= holder_shown_after)
    out.add(metric("outboxd_xmin_holder_transactions"), {name, facts.horizon->kind, facts.horizon->name},
            facts.horizon->transactions);
}

void collect_upkeep(std::string_view name, const UpkeepFigures& f, Exposition& out) {
  out.add(metric("outboxd_partitions_made_total"), {name}, f.partitions_made);
  out.add(metric("outboxd_days_dropped_total"), {name}, f.days_dropped);
  out.add(metric("outboxd_old_rows_deleted_total"), {name}, f.rows_deleted);
  out.add(metric("outboxd_upkeep_put_off_total"), {name}, f.put_off);
  out.add(metric("outboxd_upkeep_failed_total"), {name}, f.failed);
}

}  // namespace

void collect(const ProcessFigures& process, Exposition& out) {
  const ProcessUse use = process_use();
  out.add(metric("outboxd_build_info"), {process.version, process.librdkafka, process.libpq}, true);
  out.add(metric("process_start_time_seconds"), {}, process.started_at);
  out.add(metric("process_cpu_seconds_total"), {}, use.cpu_seconds);
  out.add(metric("process_resident_memory_bytes"), {}, use.resident_bytes);
  out.add(metric("process_open_fds"), {}, use.open_fds);
  out.add(metric("outboxd_log_lines_total"), {"warn"}, process.warnings);
  out.add(metric("outboxd_log_lines_total"), {"error"}, process.errors);
  out.add(metric("outboxd_admin_requests_total"), {}, process.requests);
  out.add(metric("outboxd_admin_refused_total"), {}, process.refused);
}

void collect(const PipelineView& pipeline, MonoTime now, Exposition& out) {
  collect_health(pipeline.name, pipeline.figures, out);
  if (pipeline.kafka) collect_kafka(pipeline.name, *pipeline.kafka, out);
  collect_lanes(pipeline.name, pipeline.figures, out);
  collect_rows(pipeline.name, pipeline.figures, out);
  collect_transactions(pipeline.name, pipeline.figures, out);
  collect_topics(pipeline.name, pipeline.figures, out);
  collect_survey(pipeline.name, pipeline.survey, now, out);
  collect_upkeep(pipeline.name, pipeline.upkeep, out);
}

}  // namespace outbox::relay
