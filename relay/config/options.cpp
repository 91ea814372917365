#include "relay/config/options.hpp"

#include <array>

namespace outbox::config {
namespace {

template <auto... Path>
constexpr Option<Config> process(OptionFacts facts) {
  return option_at<Config, Path...>(facts);
}
template <auto... Path>
constexpr Option<Pipeline> pipeline(OptionFacts facts) {
  return option_at<Pipeline, Path...>(facts);
}

constexpr std::array process_table{
    process<&Config::instance>({.path = "instance",
                                .highest = "128",
                                .doc = "This process's name in the lease table and in `outboxd status`, "
                                       "followed there by the pipeline's. It must differ "
                                       "from every other instance's, also from this one's before a restart.",
                                .fallback_said = "host:pid-random"}),
    process<&Config::log, &Log::level>({.path = "log.level",
                                        .kind = Kind::choice,
                                        .fallback = "info",
                                        .choices = "debug|info|warn|error",
                                        .reload = Reload::live,
                                        .doc = "The lowest level that is written."}),
    process<&Config::log, &Log::format>({.path = "log.format",
                                         .kind = Kind::choice,
                                         .fallback = "text",
                                         .choices = "text|json",
                                         .doc = "`text`: one line an event, `event key=value`. `json`: one "
                                                "object a line. Both on standard error."}),
    process<&Config::log, &Log::summary_interval>({.path = "log.summary_interval",
                                                   .kind = Kind::duration,
                                                   .fallback = "30s",
                                                   .lowest = "1s",
                                                   .highest = "1h",
                                                   .reload = Reload::live,
                                                   .doc =
                                                       "How often a pipeline that does something, or has "
                                                       "something waiting, says so in one line: sent, rate, "
                                                       "latencies, pending. Of a warning or an error that is "
                                                       "repeated, ten lines are written in 30 s, and how "
                                                       "many were left out."}),
    process<&Config::shutdown, &Shutdown::timeout>(
        {.path = "shutdown.timeout",
         .kind = Kind::duration,
         .fallback = "10s",
         .lowest = "100ms",
         .highest = "5m",
         .doc = "How long a stopping process waits for Kafka's acknowledgements and their marks. What is "
                "unacknowledged "
                "then is sent again by the next owner."}),
    process<&Config::admin, &Admin::listen>({.path = "admin.listen",
                                             .fallback = "127.0.0.1:9464",
                                             .lowest = "1",
                                             .highest = "255",
                                             .doc = "Where `/metrics`, `/healthz`, `/readyz`, `/status` and "
                                                    "the status page are: an address and a port, "
                                                    "`unix:/path`, or `off`. Whoever reaches it can read "
                                                    "topics, keys on hold and errors, and change "
                                                    "nothing. All interfaces only where `0.0.0.0` or `[::]` "
                                                    "is written. Where the port is taken, the "
                                                    "relay works without it and tries again."}),
    process<&Config::admin, &Admin::topics_max>(
        {.path = "admin.topics_max",
         .kind = Kind::count,
         .fallback = "100",
         .lowest = "0",
         .highest = "10000",
         .reload = Reload::live,
         .doc =
             "The most topics of a pipeline that metrics and status tell apart, in the order of their first "
             "message; the others are told together."}),
    process<&Config::admin, &Admin::survey_interval>(
        {.path = "admin.survey_interval",
         .kind = Kind::duration,
         .fallback = "5s",
         .lowest = "1s",
         .highest = "1h",
         .reload = Reload::live,
         .doc =
             "How often the table is counted for metrics and status page, on a connection of its own. Longer "
             "where counting takes long: never more than a twentieth of the time."}),
};

constexpr std::array pipeline_table{
    pipeline<&Pipeline::name>(
        {.path = "name",
         .lowest = "1",
         .highest = "63",
         .required = true,
         .example = "payments",
         .doc = "Letters, digits, '.', '_' and '-'; unique in the file. Every message carries it as "
                "its header `outbox-source`."}),
    pipeline<&Pipeline::postgres, &Postgres::uri>(
        {.path = "postgres.uri",
         .lowest = "1",
         .highest = "4096",
         .required = true,
         .secret = Secret::uri,
         .example = "postgresql://outbox_relay@127.0.0.1:5432/payments",
         .doc = "Where the outbox table is, as a libpq URI or keyword=value text. Keep a password out of the "
                "file by "
                "`${NAME}`, `file:/path`, or libpq's own passfile. Other credentials of the same server are "
                "taken over when the file is read again."}),
    pipeline<&Pipeline::postgres, &Postgres::connections>(
        {.path = "postgres.connections",
         .kind = Kind::count,
         .fallback = "3",
         .lowest = "2",
         .highest = "4",
         .doc = "Working connections: one claims, the others mark, so that a claim never waits behind a "
                "mark. One more "
                "carries the lease and listens."}),
    pipeline<&Pipeline::postgres, &Postgres::statement_deadline>(
        {.path = "postgres.statement_deadline",
         .kind = Kind::duration,
         .fallback = "30s",
         .lowest = "1s",
         .highest = "10m",
         .doc = "A statement without an answer for this long is cancelled and its connection made again."}),
    pipeline<&Pipeline::postgres, &Postgres::prepared>(
        {.path = "postgres.prepared",
         .kind = Kind::choice,
         .fallback = "named",
         .choices = "named|unnamed",
         .doc = "`named`: statements are prepared once per connection, except where a pooler is found "
                "between, which would lose them. `unnamed`: never."}),
    pipeline<&Pipeline::source, &Source::mode>({.path = "source.mode",
                                                .kind = Kind::choice,
                                                .fallback = "notify",
                                                .choices = "poll|notify",
                                                .doc = "`notify`: an insert wakes the relay while it sleeps, "
                                                       "and the poll stays as the truth behind that hint. "
                                                       "`poll`: only the poll."}),
    pipeline<&Pipeline::source, &Source::table>(
        {.path = "source.table",
         .fallback = "public.outbox_msg",
         .lowest = "1",
         .highest = "255",
         .doc = "The outbox table. Written as in SQL: `schema.table`, parts with capitals or dots in double "
                "quotes."}),
    pipeline<&Pipeline::source, &Source::partition_column>(
        {.path = "source.partition_column",
         .fallback = "",
         .highest = "130",
         .doc =
             "An integer column that was added to the table (`ALTER TABLE outbox_msg ADD COLUMN shelf int`) "
             "and in which a row names its partition, from 0; where it is null the row goes by its key. Rows "
             "of one key keep their order only if they name one partition. Written as in SQL. Not with "
             "publish.partition_header.",
         .fallback_said = "none"}),
    pipeline<&Pipeline::source, &Source::poll_interval>(
        {.path = "source.poll_interval",
         .kind = Kind::duration,
         .fallback = "250ms",
         .lowest = "10ms",
         .highest = "60s",
         .doc = "How often a quiet table is looked at. In `notify` mode the longest delay where a "
                "notification was lost."}),
    pipeline<&Pipeline::source, &Source::lanes>({.path = "source.lanes",
                                                 .kind = Kind::count,
                                                 .fallback = "8",
                                                 .lowest = "1",
                                                 .highest = "64",
                                                 .doc =
                                                     "Into how many lanes the table's 64 shards are dealt: "
                                                     "the instances of a pipeline share them. Lanes overlap "
                                                     "claim, publish and mark under backlog. Where instances "
                                                     "differ, the one that started last decides."}),
    pipeline<&Pipeline::source, &Source::batch_rows>({.path = "source.batch_rows",
                                                      .kind = Kind::count,
                                                      .fallback = "5000",
                                                      .lowest = "1",
                                                      .highest = "50000",
                                                      .doc = "The most rows of one claim."}),
    pipeline<&Pipeline::source, &Source::batch_bytes>(
        {.path = "source.batch_bytes",
         .kind = Kind::size,
         .fallback = "8MiB",
         .lowest = "64KiB",
         .highest = "256MiB",
         .doc = "The most bytes of bodies of one claim; a single row is always taken, whatever its size."}),
    pipeline<&Pipeline::source, &Source::after_sent>(
        {.path = "source.after_sent",
         .kind = Kind::choice,
         .fallback = "mark",
         .choices = "mark|delete",
         .doc = "`mark`: an acknowledged row stays as SENT with its partition and offset, until its day is "
                "dropped. `delete`: "
                "it goes at once, which is faster and gives up replay, reconciliation, and protection "
                "against a broker "
                "that loses what it acknowledged."}),
    pipeline<&Pipeline::source, &Source::on_dead>(
        {.path = "source.on_dead",
         .kind = Kind::choice,
         .fallback = "hold_key",
         .choices = "hold_key|continue",
         .doc = "What later messages of a key do after one of them died. `hold_key`: they wait, in order, "
                "until an operator "
                "retries or discards it. `continue`: they pass."}),
    pipeline<&Pipeline::delivery>(
        {.path = "delivery",
         .kind = Kind::choice,
         .fallback = "at_least_once",
         .choices = "at_least_once|exactly_once",
         .doc =
             "`at_least_once`: a crash can repeat a message, and the consumer's dedup refuses the repeat. "
             "`exactly_once`: each batch of a lane is one Kafka transaction with a record of it, so that a "
             "consumer with isolation.level read_committed sees each message once. One that differs from "
             "the instances at work waits until those have stopped."}),
    pipeline<&Pipeline::ledger, &Ledger::topic>(
        {.path = "ledger.topic",
         .highest = "249",
         .doc = "With `exactly_once`: the topic of these records, one partition a lane, compacted. The relay "
                "makes it where it may. Each pipeline needs one of its own.",
         .fallback_said = "outboxd-ledger-NAME"}),
    pipeline<&Pipeline::publish, &Publish::headers>(
        {.path = "publish.headers",
         .kind = Kind::choice,
         .fallback = "plain",
         .choices = "plain|cloudevents|debezium",
         .doc = "Which headers a message carries beside its own: `outbox-*`; CloudEvents in Kafka's binary "
                "mode; or the "
                "`id` header of Debezium's event router."}),
    pipeline<&Pipeline::publish, &Publish::tracestate>(
        {.path = "publish.tracestate",
         .kind = Kind::choice,
         .fallback = "pass",
         .choices = "pass|stamp",
         .doc = "`traceparent` always passes as the row has it. `stamp`: where a row has one, "
                "`outboxd=PIPELINE:ID` is put first into its `tracestate` (W3C Trace Context), so that a "
                "trace leads "
                "to the outbox row. `pass`: that passes unchanged, too."}),
    pipeline<&Pipeline::publish, &Publish::in_flight_bytes>(
        {.path = "publish.in_flight_bytes",
         .kind = Kind::size,
         .fallback = "64MiB",
         .lowest = "1MiB",
         .highest = "16GiB",
         .doc = "The most bytes of bodies held in memory between claim and mark, over all lanes. A process "
                "needs the sum "
                "over its pipelines."}),
    pipeline<&Pipeline::publish, &Publish::in_flight_rows>(
        {.path = "publish.in_flight_rows",
         .kind = Kind::count,
         .fallback = "20000",
         .lowest = "1",
         .highest = "1000000",
         .doc = "The most rows held in memory between claim and mark, over all lanes."}),
    pipeline<&Pipeline::publish, &Publish::max_attempts>(
        {.path = "publish.max_attempts",
         .kind = Kind::count,
         .fallback = "0",
         .lowest = "0",
         .highest = "1000000",
         .doc =
             "After so many refusals of a message for a reason that may pass, each answered by Kafka itself "
             "to the message alone, it is dead. 0: never; it is tried until it is taken, and its key waits. "
             "A cluster that is away does not count. Not with `delivery: exactly_once`."}),
    pipeline<&Pipeline::publish, &Publish::partition_header>(
        {.path = "publish.partition_header",
         .fallback = "",
         .highest = "255",
         .doc = "A header of the row that names its partition, as a decimal number from 0; a row without it "
                "goes by its key. Rows of one key keep their order only if they name one partition.",
         .fallback_said = "none"}),
    pipeline<&Pipeline::topics, &Topics::allow>(
        {.path = "topics.allow",
         .fallback = "*",
         .lowest = "1",
         .highest = "4096",
         .doc = "Topics that rows may go to, separated by commas; one `*` in each stands for anything: "
                "`payment.*, orders`. A row of another topic waits, with its topic on hold."}),
    pipeline<&Pipeline::topics, &Topics::rewrite>(
        {.path = "topics.rewrite",
         .fallback = "",
         .highest = "4096",
         .doc = "What Kafka calls a row's topic: `from=to`, separated by commas, the first that fits; a `*` "
                "is carried over: `audit.*=log.*.raw, old=new`.",
         .fallback_said = "none"}),
    pipeline<&Pipeline::topics, &Topics::prefix>({.path = "topics.prefix",
                                                  .fallback = "",
                                                  .highest = "200",
                                                  .doc = "Put before every topic's name, after `rewrite`: "
                                                         "`eu.`.",
                                                  .fallback_said = "none"}),
    pipeline<&Pipeline::topics, &Topics::create>({.path = "topics.create",
                                                  .kind = Kind::choice,
                                                  .fallback = "off",
                                                  .choices = "off|on",
                                                  .doc = "`on`: an allowed topic that is missing is made. "
                                                         "`off`: its rows wait until somebody makes it."}),
    pipeline<&Pipeline::topics, &Topics::create_partitions>(
        {.path = "topics.create_partitions",
         .kind = Kind::count,
         .fallback = "0",
         .lowest = "0",
         .highest = "100000",
         .doc = "Partitions of a topic that is made. 0: the brokers' default."}),
    pipeline<&Pipeline::topics, &Topics::create_replication>(
        {.path = "topics.create_replication",
         .kind = Kind::count,
         .fallback = "0",
         .lowest = "0",
         .highest = "1000",
         .doc = "Replicas of a topic that is made. 0: the brokers' default."}),
    pipeline<&Pipeline::topics, &Topics::create_configs>(
        {.path = "topics.create_configs",
         .fallback = "",
         .highest = "4096",
         .doc = "Settings of a topic that is made: `min.insync.replicas=2, retention.ms=604800000`.",
         .fallback_said = "none"}),
    pipeline<&Pipeline::lease, &Lease::ttl>({.path = "lease.ttl",
                                             .kind = Kind::duration,
                                             .fallback = "5s",
                                             .lowest = "1s",
                                             .highest = "60s",
                                             .doc = "How long lanes stay with an owner that has gone silent. "
                                                    "After a crash, the other instances take over this much "
                                                    "later at the most."}),
    pipeline<&Pipeline::retention, &Retention::old_rows>(
        {.path = "retention.old_rows",
         .kind = Kind::choice,
         .fallback = "remove",
         .choices = "remove|keep",
         .doc = "`remove`: a day goes as a whole once each of its rows is settled and was sent before the "
                "replay window; a row that is pending, held or dead keeps its day. In a table without "
                "partitions rows are deleted in small batches. `keep`: nothing is ever removed."}),
    pipeline<&Pipeline::retention, &Retention::replay_window>(
        {.path = "retention.replay_window",
         .kind = Kind::duration,
         .fallback = "7d",
         .lowest = "1h",
         .highest = "3650d",
         .doc =
             "For how long a sent row can still be sent again, should Kafka lose what it acknowledged or a "
             "consumer what it did."}),
    pipeline<&Pipeline::retention, &Retention::partitions_ahead>(
        {.path = "retention.partitions_ahead",
         .kind = Kind::count,
         .fallback = "7",
         .lowest = "0",
         .highest = "366",
         .doc = "How many days ahead partitions are made. A row without its day goes into the DEFAULT "
                "partition, so a relay may be away for that long at no cost. 0: somebody else makes them."}),
    pipeline<&Pipeline::retention, &Retention::every>(
        {.path = "retention.every",
         .kind = Kind::duration,
         .fallback = "1h",
         .lowest = "1s",
         .highest = "1d",
         .doc = "How often partitions are made and old rows looked for, by the instance that has lane 0."}),
};

}  // namespace

std::span<const Option<Config>> process_options() {
  return process_table;
}
std::span<const Option<Pipeline>> pipeline_options() {
  return pipeline_table;
}

}  // namespace outbox::config
