#include "consumer/config/options.hpp"

#include <array>

namespace outbox::config {
namespace {

using O = ConsumerOptions;
using std::chrono::hours;

template <auto... Path>
constexpr Option<O> row(OptionFacts facts) {
  return option_at<O, Path...>(facts);
}

void store_horizon(O& options, const Value& value) {
  const std::chrono::milliseconds time{std::get<std::int64_t>(value)};
  options.horizon = time.count() == endless ? forever : std::chrono::duration_cast<hours>(time);
}
Value load_horizon(const O& options) {
  if (options.horizon == forever) return endless;
  return std::int64_t{std::chrono::milliseconds(options.horizon).count()};
}

constexpr std::array table{
    row<&O::name>(
        {.path = "name",
         .lowest = "1",
         .highest = "200",
         .required = true,
         .example = "ledger",
         .doc = "The consumer's name in processed_msgs, and the group.id where `kafka` has none: never "
                "change it, never share it."}),
    row<&O::postgres>({.path = "postgres",
                       .lowest = "1",
                       .highest = "4096",
                       .required = true,
                       .secret = Secret::uri,
                       .example = "postgresql://ledger@127.0.0.1:5432/ledger",
                       .doc =
                           "The service's own database, as a libpq URI or keyword=value text. Keep a "
                           "password out of the file by `${NAME}`, `file:/path`, or libpq's own passfile."}),
    row<&O::schema>({.path = "schema",
                     .fallback = "public",
                     .lowest = "1",
                     .highest = "63",
                     .doc = "Where processed_msgs, dead_msgs and the service's outbox are; case matters."}),
    row<&O::start_at>({.path = "start_at",
                       .kind = Kind::choice,
                       .fallback = "beginning",
                       .choices = "beginning|end",
                       .doc = "Where a new group starts. A partition that is added later is read from its "
                              "beginning."}),
    row<&O::workers>({.path = "workers",
                      .kind = Kind::count,
                      .fallback = "1",
                      .lowest = "1",
                      .highest = "64",
                      .doc = "Threads that run the handler, each with a connection of its own."}),
    row<&O::order>({.path = "order",
                    .kind = Kind::choice,
                    .fallback = "partition",
                    .choices = "partition|key",
                    .doc = "What order is kept: that of a partition, which is one worker's; or that of a key "
                           "within it, its keys spread over all workers."}),
    row<&O::offsets>({.path = "offsets",
                      .kind = Kind::choice,
                      .fallback = "kafka",
                      .choices = "kafka|database",
                      .doc =
                          "Where the offset is kept that decides where to go on: with the group, or in the "
                          "database, moved in the transaction of the effects, so that a member that froze "
                          "and wakes again is refused. The latter needs `order: partition`."}),
    row<&O::batch_rows_max>({.path = "batch_rows_max",
                             .kind = Kind::count,
                             .fallback = "500",
                             .lowest = "1",
                             .highest = "10000",
                             .doc = "The most records of one transaction."}),
    row<&O::batch_bytes_max>({.path = "batch_bytes_max",
                              .kind = Kind::size,
                              .fallback = "4MiB",
                              .lowest = "1B",
                              .highest = "1GiB",
                              .doc = "The most bytes of one transaction; a single record may exceed it."}),
    row<&O::buffer_bytes_max>({.path = "buffer_bytes_max",
                               .kind = Kind::size,
                               .fallback = "16MiB",
                               .lowest = "1B",
                               .highest = "16GiB",
                               .doc =
                                   "What is fetched and not yet done, beyond librdkafka's own queue; twice "
                                   "that while partitions wait for their next try."}),
    row<&O::attempts_max>({.path = "attempts_max",
                           .kind = Kind::count,
                           .fallback = "10",
                           .lowest = "1",
                           .highest = "1000",
                           .doc = "Tries of a handler that fails for a reason of the message's."}),
    row<&O::after_attempts>({.path = "after_attempts",
                             .kind = Kind::choice,
                             .fallback = "park_key",
                             .choices = "block|park_key|dead_letter",
                             .doc = "Then: its partition waits behind it; or it goes to dead_msgs and later "
                                    "messages of its key follow it, in order; or it goes there alone."}),
    row<&O::guard>({.path = "guard",
                    .kind = Kind::choice,
                    .fallback = "none",
                    .choices = "none|by_seq",
                    .doc =
                        "`by_seq`: a message is stale where a higher outbox-seq of its source, topic and key "
                        "was applied."}),
    Option<O>{
        {.path = "horizon",
         .kind = Kind::duration,
         .fallback = "30d",
         .lowest = "2d",
         .highest = "36500d",
         .choices = "forever",
         .doc = "How long dedup remembers at least. It must exceed all that can delay or repeat a message."},
        store_horizon,
        load_horizon},
    row<&O::horizon_check>({.path = "horizon_check",
                            .kind = Kind::choice,
                            .fallback = "refuse",
                            .choices = "refuse|unchecked",
                            .doc =
                                "`refuse`: the consumer ends where the horizon is not longer than a topic's "
                                "retention.ms + segment.ms + publish_delay_max, or where that can't be told. "
                                "`unchecked`: somebody knows better, and answers for it."}),
    row<&O::publish_delay_max>(
        {.path = "publish_delay_max",
         .kind = Kind::duration,
         .fallback = "7d",
         .lowest = "0h",
         .highest = "3650d",
         .doc = "The longest that a message may lie in its outbox before Kafka has it, or "
                "has it again: a schedule, an outage, a hold, a replay."}),
    row<&O::maintain_interval>({.path = "maintain_interval",
                                .kind = Kind::duration,
                                .fallback = "1h",
                                .lowest = "0s",
                                .highest = "24h",
                                .doc = "Between two rounds of upkeep of processed_msgs; `0s`: never, since "
                                       "somebody else does it."}),
    row<&O::dead_retry_interval>({.path = "dead_retry_interval",
                                  .kind = Kind::duration,
                                  .fallback = "1s",
                                  .lowest = "0ms",
                                  .highest = "1h",
                                  .doc =
                                      "Between two looks for dead messages that an operator wants applied; "
                                      "`0ms`: never."}),
    row<&O::backoff_initial>({.path = "backoff_initial",
                              .kind = Kind::duration,
                              .fallback = "100ms",
                              .lowest = "1ms",
                              .highest = "1h",
                              .doc = "Before a failed message or a lost database is tried again …"}),
    row<&O::backoff_max>({.path = "backoff_max",
                          .kind = Kind::duration,
                          .fallback = "10s",
                          .lowest = "1ms",
                          .highest = "1h",
                          .doc = "… doubled up to this."}),
    row<&O::commit_interval>(
        {.path = "commit_interval",
         .kind = Kind::duration,
         .fallback = "100ms",
         .lowest = "0ms",
         .highest = "1h",
         .doc = "Between commits of offsets to Kafka; replays, never loss, depend on it."}),
    row<&O::drain_timeout>({.path = "drain_timeout",
                            .kind = Kind::duration,
                            .fallback = "10s",
                            .lowest = "0ms",
                            .highest = "10m",
                            .doc = "How long a rebalance or a stop waits for the batch at work."}),
};

}  // namespace

std::span<const Option<ConsumerOptions>> consumer_options() {
  return table;
}

}  // namespace outbox::config
