#pragma once
// A backlog drained by the real relay, beside the limits of the same minute. Every measurement starts from a
// copy of one database, so that all of them find the same pages.

#include "bench/figures.hpp"
#include "bench/options.hpp"
#include "bench/relay.hpp"
#include "bench/stage.hpp"

namespace bench {

/// limit_publish_…, limit_pg_…, drain_…, cpu_s_per_million and rss_peak_mib: the rounds alternate over all of
/// them.
void measure_drain(Stage& stage, const Options& options, Figures& figures);

struct Drained {
  double seconds = 0;  ///< from the lanes' taking to the last commit
  double cpu_s = 0;    ///< of outboxd since its start
  double rss_peak_mib = 0;
};
/// Starts a relay on `database`, waits until its `rows` rows are in Kafka and no row waits, stops it, and
/// checks the database: all SENT, or all gone. Any thread, for a database and a topic of its own.
[[nodiscard]] Drained drain(Stage& stage, const std::string& database, const std::string& topic,
                            long long rows, const RelayOptions& options = {});

}  // namespace bench
