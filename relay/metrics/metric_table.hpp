#pragma once
// The one table of metrics. /metrics exposes it, docs/metrics.md is generated from it, and the alert rules
// and the dashboard are checked against it: a metric is added by one row here and one line in collect.cpp. A
// name that is not in here does not compile.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace outbox::relay {

enum class MetricType { counter, gauge, histogram };

struct MetricFacts {
  std::string_view name;
  MetricType type = MetricType::gauge;
  std::string_view unit;    ///< for people; a name ends in it where Prometheus wants that
  std::string_view labels;  ///< "pipeline,topic"
  std::string_view help;    ///< one sentence
};

inline constexpr std::array metric_table{
    // The process.
    MetricFacts{"outboxd_build_info", MetricType::gauge, "1", "version,librdkafka,libpq",
                "What runs: always 1, the versions are in its labels."},
    MetricFacts{"process_start_time_seconds", MetricType::gauge, "seconds", "",
                "When the process started, since 1970."},
    MetricFacts{"process_cpu_seconds_total", MetricType::counter, "seconds", "",
                "Processor time used, by user and system together."},
    MetricFacts{"process_resident_memory_bytes", MetricType::gauge, "bytes", "", "Memory in use."},
    MetricFacts{"process_open_fds", MetricType::gauge, "descriptors", "", "Open file descriptors."},
    MetricFacts{"outboxd_log_lines_total", MetricType::counter, "lines", "level",
                "Lines logged as a warning or an error."},
    MetricFacts{"outboxd_admin_requests_total", MetricType::counter, "requests", "",
                "Requests that the admin endpoint answered."},
    MetricFacts{"outboxd_admin_refused_total", MetricType::counter, "connections", "",
                "Connections to the admin endpoint that were refused or cut: too many, too slow, too large, "
                "or no HTTP."},
    // Is it well?
    MetricFacts{"outboxd_ready", MetricType::gauge, "0 or 1", "pipeline",
                "1 while the pipeline makes progress, or has nothing to do; /readyz says the reason of a 0."},
    MetricFacts{"outboxd_paused", MetricType::gauge, "0 or 1", "pipeline",
                "1 while an operator has paused the whole pipeline; it is ready all the same."},
    MetricFacts{"outboxd_stuck", MetricType::gauge, "0 or 1", "pipeline",
                "1 while work stands still although no server is known to be away."},
    MetricFacts{"outboxd_phase", MetricType::gauge, "0 or 1", "pipeline,phase",
                "1 for the phase that the pipeline is in: standby, working, draining, stopping, stopped."},
    MetricFacts{"outboxd_postgres_up", MetricType::gauge, "0 or 1", "pipeline",
                "1 while all connections to PostgreSQL are up and the table is fit."},
    MetricFacts{"outboxd_postgres_losses_total", MetricType::counter, "losses", "pipeline",
                "Times that PostgreSQL went away."},
    MetricFacts{"outboxd_kafka_up", MetricType::gauge, "0 or 1", "pipeline", "1 while the cluster answers."},
    MetricFacts{"outboxd_kafka_losses_total", MetricType::counter, "losses", "pipeline",
                "Times that the cluster went away."},
    // librdkafka, as its last statistics say.
    MetricFacts{"outboxd_producer_queue_messages", MetricType::gauge, "messages", "pipeline",
                "Messages that librdkafka has and has not reported."},
    MetricFacts{"outboxd_producer_queue_bytes", MetricType::gauge, "bytes", "pipeline", "Their size."},
    MetricFacts{"outboxd_broker_up", MetricType::gauge, "0 or 1", "pipeline,broker",
                "1 while the connection to the broker is up; librdkafka connects to those that lead a "
                "partition in use."},
    MetricFacts{"outboxd_broker_round_trip_seconds", MetricType::gauge, "seconds", "pipeline,broker",
                "How long the broker took to answer, in the mean of the last interval."},
    MetricFacts{"outboxd_broker_round_trip_p99_seconds", MetricType::gauge, "seconds", "pipeline,broker",
                "The 99th percentile of the same."},
    MetricFacts{"outboxd_broker_queued_p99_seconds", MetricType::gauge, "seconds", "pipeline,broker",
                "How long messages waited in librdkafka before they were sent, 99th percentile of the last "
                "interval."},
    MetricFacts{"outboxd_broker_waiting_requests", MetricType::gauge, "requests", "pipeline,broker",
                "Requests sent and not answered yet."},
    MetricFacts{"outboxd_broker_request_errors_total", MetricType::counter, "requests", "pipeline,broker",
                "Requests that could not be sent or whose answer could not be read."},
    MetricFacts{"outboxd_broker_request_timeouts_total", MetricType::counter, "requests", "pipeline,broker",
                "Requests that were not answered in time."},
    MetricFacts{"outboxd_broker_request_retries_total", MetricType::counter, "requests", "pipeline,broker",
                "Requests that were sent again."},
    MetricFacts{"outboxd_broker_connects_total", MetricType::counter, "connects", "pipeline,broker",
                "Times that a connection to the broker was made."},
    // Ownership.
    MetricFacts{"outboxd_lanes_held", MetricType::gauge, "lanes", "pipeline",
                "Lanes that this process works."},
    MetricFacts{"outboxd_lane_epoch", MetricType::gauge, "epoch", "pipeline,lane",
                "The epoch of a lane that this process works: it rises with every take-over."},
    MetricFacts{"outboxd_lease_left_seconds", MetricType::gauge, "seconds", "pipeline",
                "How long the lanes are this process's unless it renews them; 0 without a lane."},
    MetricFacts{"outboxd_lanes_taken_total", MetricType::counter, "lanes_taken", "pipeline",
                "Times that lanes were taken."},
    MetricFacts{"outboxd_lanes_lost_total", MetricType::counter, "lanes_taken", "pipeline",
                "Times that lanes were lost because they could not be renewed."},
    MetricFacts{"outboxd_lane_lost_rows_total", MetricType::counter, "rows", "pipeline",
                "Rows not marked because another owner has their lane; it sends them again."},
    MetricFacts{
        "outboxd_replaced_rows_total", MetricType::counter, "rows", "pipeline",
        "Rows in flight, or in the ledger, whose ids are other rows' by now: the database went back in time "
        "(a failover to a standby that lagged, a restore), or its sequence began again."},
    // A row's way.
    MetricFacts{"outboxd_claims_total", MetricType::counter, "statements", "pipeline",
                "Claim queries issued."},
    MetricFacts{"outboxd_claims_failed_total", MetricType::counter, "statements", "pipeline",
                "Claim queries that ended in an error; they are repeated."},
    MetricFacts{
        "outboxd_due_locked_total", MetricType::counter, "rows", "pipeline",
        "Due rows that a look found locked by somebody else's transaction, counted at each look; they "
        "and what follows of their keys wait for its end."},
    MetricFacts{"outboxd_claim_seconds", MetricType::histogram, "seconds", "pipeline",
                "How long a look at the table takes, asked to answered."},
    MetricFacts{"outboxd_claimed_rows_total", MetricType::counter, "rows", "pipeline",
                "Rows that looks brought."},
    MetricFacts{"outboxd_dropped_rows_total", MetricType::counter, "rows", "pipeline",
                "Rows claimed and left PENDING for a later claim."},
    MetricFacts{"outboxd_published_total", MetricType::counter, "messages", "pipeline,topic",
                "Messages handed to Kafka's producer, repeats included."},
    MetricFacts{"outboxd_acked_total", MetricType::counter, "messages", "pipeline,topic",
                "Messages that all in-sync replicas have."},
    MetricFacts{"outboxd_dead_total", MetricType::counter, "messages", "pipeline,topic",
                "Messages given up, because Kafka will never take them."},
    MetricFacts{"outboxd_held_rows_total", MetricType::counter, "rows", "pipeline",
                "Rows put behind a hold on their key or topic."},
    MetricFacts{"outboxd_claim_to_ack_seconds", MetricType::histogram, "seconds", "pipeline",
                "A message's time in the relay and in Kafka: claimed to acknowledged."},
    MetricFacts{
        "outboxd_created_to_ack_seconds", MetricType::histogram, "seconds", "pipeline",
        "A message's whole way: from its created_at (the start of the transaction that wrote it, or its "
        "available_at) to Kafka's acknowledgement, by the clocks of the database and of this machine."},
    MetricFacts{"outboxd_marks_total", MetricType::counter, "statements", "pipeline",
                "Statements that mark rows SENT."},
    MetricFacts{"outboxd_marks_failed_total", MetricType::counter, "statements", "pipeline",
                "Marks that ended in an error or without an answer; they are repeated."},
    MetricFacts{"outboxd_mark_seconds", MetricType::histogram, "seconds", "pipeline",
                "How long a mark takes, asked to durable."},
    MetricFacts{"outboxd_marked_rows_total", MetricType::counter, "rows", "pipeline",
                "Rows marked SENT, or deleted."},
    MetricFacts{"outboxd_in_flight_rows", MetricType::gauge, "rows", "pipeline",
                "Rows claimed and not settled."},
    MetricFacts{"outboxd_in_flight_bytes", MetricType::gauge, "bytes", "pipeline",
                "What the rows in flight count against publish.in_flight_bytes."},
    MetricFacts{"outboxd_deferred_rows", MetricType::gauge, "rows", "pipeline",
                "Rows that wait for partitions of Kafka that do not answer, out of everybody's way."},
    MetricFacts{"outboxd_deferred_full", MetricType::gauge, "0 or 1", "pipeline",
                "1 while 100,000 rows wait so: then the others wait as well."},
    MetricFacts{"outboxd_producers_total", MetricType::counter, "producers", "pipeline",
                "Producers made in place of a finished one."},
    // Exactly once: none of these with `delivery: at_least_once`.
    MetricFacts{"outboxd_transactions_total", MetricType::counter, "transactions", "pipeline",
                "Kafka transactions committed; each carries one batch of one lane."},
    MetricFacts{
        "outboxd_transactions_failed_total", MetricType::counter, "transactions", "pipeline",
        "Kafka transactions that did not end in a clean commit; the ledger told what became of them."},
    MetricFacts{"outboxd_transactional_producers_total", MetricType::counter, "producers", "pipeline",
                "Transactional producers made: for a lane taken, and after each transaction that failed."},
    MetricFacts{"outboxd_lanes_stopped", MetricType::gauge, "lanes", "pipeline",
                "Lanes that this process has and that cannot send."},
    MetricFacts{"outboxd_lane_stopped_seconds", MetricType::gauge, "seconds", "pipeline,lane",
                "How long such a lane has sent nothing; /status says why. Only lanes that are stopped."},
    MetricFacts{"outboxd_notifications_total", MetricType::counter, "notifications", "pipeline",
                "Notifications of an insert that woke the relay."},
    MetricFacts{"outboxd_asleep", MetricType::gauge, "0 or 1", "pipeline",
                "1 while the relay waits for a notification or its next poll."},
    // Topics.
    MetricFacts{
        "outboxd_topic_held", MetricType::gauge, "0 or 1", "pipeline,topic",
        "1 while the relay has put the topic on hold, because it is missing or forbidden; it is probed."},
    MetricFacts{"outboxd_topic_partitions_away", MetricType::gauge, "partitions", "pipeline,topic",
                "Partitions that owe reports and give none: their rows wait, the others go on."},
    MetricFacts{"outboxd_topic_careful", MetricType::gauge, "0 or 1", "pipeline,topic",
                "1 while one message a partition is sent at a time, after Kafka refused one."},
    MetricFacts{"outboxd_topic_partitions", MetricType::gauge, "partitions", "pipeline,topic",
                "The pinned partition count, over which keys are spread."},
    MetricFacts{"outboxd_topic_waiting_rows", MetricType::gauge, "rows", "pipeline,topic",
                "Rows claimed and not published yet."},
    // The table, as a survey saw it. Every instance surveys the whole table, whichever lanes it has.
    MetricFacts{"outboxd_pending_rows", MetricType::gauge, "rows", "pipeline",
                "Rows that could be sent now."},
    MetricFacts{"outboxd_scheduled_rows", MetricType::gauge, "rows", "pipeline",
                "Rows whose time has not come."},
    MetricFacts{"outboxd_held_rows", MetricType::gauge, "rows", "pipeline", "Rows that wait behind a hold."},
    MetricFacts{"outboxd_dead_rows", MetricType::gauge, "rows", "pipeline",
                "Rows that wait for an operator."},
    MetricFacts{"outboxd_oldest_pending_age_seconds", MetricType::gauge, "seconds", "pipeline",
                "The age of the row that waits longest among those that could be sent; 0 without one."},
    MetricFacts{"outboxd_holds", MetricType::gauge, "holds", "pipeline",
                "Keys and topics on hold, and the pipeline itself where it is."},
    MetricFacts{"outboxd_partitions_ahead_seconds", MetricType::gauge, "seconds", "pipeline",
                "How far ahead the table's daily partitions reach."},
    MetricFacts{"outboxd_default_partition_bytes", MetricType::gauge, "bytes", "pipeline",
                "The size of the partition for rows that no day's partition takes; it should stay near 0."},
    MetricFacts{
        "outboxd_xmin_age_transactions", MetricType::gauge, "transactions", "pipeline",
        "How far back the oldest transaction, slot or prepared transaction holds vacuum; dead index entries "
        "pile up behind it."},
    MetricFacts{
        "outboxd_notify_queue_ratio", MetricType::gauge, "ratio", "pipeline",
        "How full the server's queue of notifications is. From 0.5 on no hint is sent, so that no COMMIT "
        "fails for one, and rows wait for the next poll."},
    MetricFacts{"outboxd_survey_age_seconds", MetricType::gauge, "seconds", "pipeline",
                "How old the survey is that the figures above come from."},
    MetricFacts{"outboxd_survey_seconds", MetricType::gauge, "seconds", "pipeline",
                "How long the last survey took."},
    MetricFacts{"outboxd_surveys_failed_total", MetricType::counter, "surveys", "pipeline",
                "Surveys that ended in an error."},
    MetricFacts{"outboxd_xmin_holder_transactions", MetricType::gauge, "transactions", "pipeline,kind,holder",
                "Who holds vacuum back the furthest, named once it is open for ten seconds: how many "
                "transactions ago it began."},
    // Upkeep, by the instance that has lane 0; the others count nothing.
    MetricFacts{"outboxd_partitions_made_total", MetricType::counter, "partitions", "pipeline",
                "Daily partitions made ahead, by this process."},
    MetricFacts{"outboxd_days_dropped_total", MetricType::counter, "partitions", "pipeline",
                "Old days dropped, by this process."},
    MetricFacts{"outboxd_old_rows_deleted_total", MetricType::counter, "rows", "pipeline",
                "Old rows deleted from the DEFAULT partition, or from a table without partitions."},
    MetricFacts{"outboxd_upkeep_put_off_total", MetricType::counter, "statements", "pipeline",
                "Partitions not made or dropped because a lock was not had in time; tried again."},
    MetricFacts{"outboxd_upkeep_failed_total", MetricType::counter, "statements", "pipeline",
                "Upkeep that ended in an error; tried again."},
};

/// A row of the table.
enum class Metric : std::uint8_t {};

[[nodiscard]] consteval Metric metric(std::string_view name) {
  const auto* at = std::find_if(metric_table.begin(), metric_table.end(),
                                [&](const MetricFacts& facts) { return facts.name == name; });
  if (at == metric_table.end()) throw "no metric of the table has this name";
  return static_cast<Metric>(at - metric_table.begin());
}

[[nodiscard]] constexpr const MetricFacts& facts_of(Metric metric) {
  return metric_table[static_cast<std::size_t>(metric)];
}

[[nodiscard]] constexpr std::string_view to_string(MetricType type) {
  return type == MetricType::counter ? "counter" : type == MetricType::gauge ? "gauge" : "histogram";
}

}  // namespace outbox::relay
