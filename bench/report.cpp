#include "bench/report.hpp"

#include <librdkafka/rdkafka.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>

#include "bench/relay.hpp"
#include "pg/session.hpp"

namespace bench {
namespace {

using Json = nlohmann::ordered_json;

enum class Bar { none, at_least, at_most };

struct Line {
  const char* name;
  const char* what;
  int decimals = 0;
  Bar bar = Bar::none;
  double limit = 0;
  unsigned cores_least = 0;  // on fewer the bar says nothing, and there is none
};

constexpr std::array lines{
    Line{"limit_publish_rows_per_s", "librdkafka alone, idempotent, acks=all"},
    Line{"limit_pg_rows_per_s", "libpq alone, select + mark, one loop"},
    Line{"limit_pg_plain_select_rows_per_s", "the same with a plain select"},
    Line{"limit_pg_two_connections_rows_per_s", "two such loops at once"},
    Line{"drain_rows_per_s", "outboxd, after_sent: mark"},
    Line{"drain_ratio", "of the lower limit", 2, Bar::at_least, 0.7},
    Line{"drain_ratio_plain_select", "of the limit with a plain select", 2},
    Line{"drain_delete_rows_per_s", "outboxd, after_sent: delete"},
    Line{"drain_delete_speedup", "over mark", 2, Bar::at_least, 1.4},
    Line{"drain_exactly_once_rows_per_s", "outboxd, delivery: exactly_once"},
    Line{"exactly_once_ratio", "of drain_rows_per_s", 2, Bar::at_least, 0.7},
    Line{"cpu_s_per_million_exactly_once", "CPU seconds of outboxd, exactly once", 2, Bar::at_most, 6},
    Line{"cpu_s_per_million", "CPU seconds of outboxd, mark", 2, Bar::at_most, 4},
    Line{"cpu_s_per_million_delete", "the same, delete", 2},
    Line{"rss_peak_mib", "memory, 300-byte rows", 1, Bar::at_most, 80},
    Line{"rss_large_rows_mib", "memory, rows of 1 MB", 1, Bar::at_most, 300},
    Line{"drain_large_rows_mb_per_s", "outboxd, rows of 1 MB"},
    Line{"latency_p50_ms", "commit to consumer", 2, Bar::at_most, 5},
    Line{"latency_p99_ms", "commit to consumer", 2, Bar::at_most, 20},
    Line{"latency_max_ms", "commit to consumer", 2},
    Line{"latency_rows_per_s", "what the writers managed"},
    Line{"latency_floor_p50_ms", "the writer produces by itself", 2},
    Line{"latency_floor_p99_ms", "the writer produces by itself", 2},
    Line{"latency_floor_max_ms", "the writer produces by itself", 2},
    Line{"latency_floor_rows_per_s", "what the writers managed"},
    Line{"steady_cpu_percent", "of one core, while latency is measured", 2, Bar::at_most, 15},
    Line{"idle_cpu_percent", "of one core, nothing to send", 2, Bar::at_most, 1},
    Line{"poll_empty_us", "a poll, no row in the table"},
    Line{"poll_sent_rows_us", "a poll, many SENT rows"},
    Line{"sent_rows_poll_ratio", "the one over the other", 2, Bar::at_most, 2},
    Line{"takeover_kill_s", "another instance's rows after kill -9, ttl 5 s", 2, Bar::at_most, 6},
    Line{"takeover_term_s", "the same after SIGTERM", 2, Bar::at_most, 1},
    Line{"claim_us", "a running relay's claims, mean"},
    Line{"claim_beside_long_transaction_us", "the same beside an idle transaction"},
    Line{"long_transaction_poll_ratio", "the one over the other", 2, Bar::at_most, 2},
    Line{"poll_commit_p50_ms", "commits at 2,000/s, the relay polls", 2},
    Line{"poll_commit_p99_ms", "commits at 2,000/s, the relay polls", 2},
    Line{"notify_commit_p50_ms", "the same, the relay is notified", 2},
    Line{"notify_commit_p99_ms", "the same, the relay is notified", 2},
    Line{"notify_commit_p99_ratio", "the one p99 over the other", 2, Bar::at_most, 2},
    Line{"scale_one_rows_per_s", "one outboxd on one database"},
    Line{"scale_two_rows_per_s", "two, each on a database of its own"},
    Line{"two_instances_ratio", "the one over the other", 2, Bar::at_least, 1.6, 6},
    Line{"scale_one_busy_cores", "processors at work, all processes: one", 2},
    Line{"scale_two_busy_cores", "the same: two", 2},
    Line{"far_one_rows_per_s", "one, its database far away"},
    Line{"far_two_rows_per_s", "two, their databases far away"},
    Line{"two_far_instances_ratio", "the one over the other", 2, Bar::at_least, 1.6},
    Line{"far_one_busy_cores", "processors at work, all processes: one", 2},
    Line{"far_two_busy_cores", "the same: two", 2},
};

bool has_bar(const Line& line) {
  return line.bar != Bar::none && std::thread::hardware_concurrency() >= line.cores_least;
}

std::optional<bool> passes(const Line& line, const Figures& figures) {
  if (!has_bar(line)) return std::nullopt;
  if (!figures.has(line.name)) return false;
  const double value = figures.median(line.name);
  return line.bar == Bar::at_least ? value >= line.limit : value <= line.limit;
}

void print_line(const Line& line, const Figures& figures) {
  const auto passed = passes(line, figures);
  std::printf("%-36s ", line.name);
  if (figures.has(line.name)) {
    std::printf("%12.*f", line.decimals, figures.median(line.name));
  } else {
    std::printf("%12s", "missing");
  }
  if (passed) {
    std::printf("  %2s %-5g %-6s", line.bar == Bar::at_least ? ">=" : "<=", line.limit,
                *passed ? "ok" : "MISSED");
  } else {
    std::printf("  %15s", "");
  }
  std::printf("  %s\n", line.what);
  if (line.bar != Bar::none && !has_bar(line))
    std::printf("%-36s %12s  no bar on %u processors: it would be %g on %u\n", "", "",
                std::thread::hardware_concurrency(), line.limit, line.cores_least);
}

Json bar_of(const Line& line, bool passed) {
  return {
      {"bar", line.bar == Bar::at_least ? "at least" : "at most"}, {"limit", line.limit}, {"pass", passed}};
}

Json method() {
  return {
      {"rounds",
       "each figure is the median of its rounds, which alternate over everything measured beside it"},
      {"drain",
       "from the moment outboxd has its lanes to the last commit; every round on a copy of one database"},
      {"limit_pg",
       "one connection: the relay's claim statement (8 shards, 5,000 rows, binary), then its mark, "
       "committed; plain_select: a bare select of the same columns by the same index instead"},
      {"limit_publish", "the same number of 300-byte messages with the relay's four headers, 6 partitions"},
      {"latency",
       "from COMMIT's return in the writer (8 connections, a row a transaction) to the consumer's poll, "
       "one clock; a message that was faster than the writer counts as 0"},
      {"floor", "the same, but the writer produces the message itself when its COMMIT has returned"},
      {"cpu", "user and system time of the outboxd process; cpu_s_per_million counts its start as well"},
      {"rss", "VmHWM of the outboxd process at the end of the drain"},
      {"poll",
       "claim_flat, claim_due and claim_end, prepared, by one session; SENT rows were inserted as such"},
      {"takeover",
       "two instances share the lanes; one gets SIGKILL or SIGTERM, and 1,000 rows of as many keys are "
       "inserted "
       "at that moment: until the last of them is marked"},
      {"long_transaction",
       "mean of outboxd_claim_seconds of two relays in the same 10 s, 50 single rows a second each, after "
       "passing_rows were sent; beside: a REPEATABLE READ transaction is open since before them"},
      {"notify_commit",
       "an insert and its commit, one row a transaction, 8 connections, 2,000 a second for latency_s, by "
       "turns in "
       "two databases; the relays run in mode notify and in mode poll"},
      {"scale",
       "rows of all databases over the time until the last relay is through; one server, one broker; "
       "busy_cores: processor time of all processes of the machine over the time it took, starts and stops "
       "included; far: the databases behind a proxy that keeps each piece, 16 kB at most, for half of "
       "far_ms, and "
       "takes the next one of that way and connection after it"}};
}

Json versions(const Stage& stage) {
  return {{"outboxd", outbox::test::run_program(outboxd_program(), {.args = {"version"}}).output},
          {"postgresql", stage.postgres_version()},
          {"libpq", outbox::pg::libpq_version()},
          {"librdkafka", rd_kafka_version_str()}};
}

Json sizes(const Options& o) {
  return {{"quick", o.quick},           {"rounds", o.rounds},       {"rows", o.rows},
          {"large_rows", o.large_rows}, {"sent_rows", o.sent_rows}, {"passing_rows", o.passing_rows},
          {"latency_s", o.latency_s},   {"rate", o.rate},           {"idle_s", o.idle_s},
          {"far_ms", o.far_ms}};
}

}  // namespace

std::string load_average() {
  const std::string text = outbox::test::read_file("/proc/loadavg");
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

int report(const Stage& stage, const Options& options, const Figures& figures,
           const std::string& load_before) {
  Json json;
  Json bars;
  int missed = 0;
  std::printf("\n%-36s %12s  %-15s\n", "figure", "median", "bar");
  for (const Line& line : lines) {
    print_line(line, figures);
    json[line.name] = figures.has(line.name) ? Json(figures.median(line.name)) : Json(nullptr);
    if (const auto passed = passes(line, figures)) {
      bars[line.name] = bar_of(line, *passed);
      missed += *passed ? 0 : 1;
    }
  }
  json["bars"] = bars;
  json["bars_missed"] = missed;
  json["rounds"] = figures.rounds();
  json["warnings"] = figures.warnings();
  json["not_measured"] = figures.failures();
  json["sizes"] = sizes(options);
  json["method"] = method();
  json["versions"] = versions(stage);
  json["machine"] = {{"cores", std::thread::hardware_concurrency()},
                     {"load_before", load_before},
                     {"load_after", load_average()}};
  const std::filesystem::path file(options.results);
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
  outbox::test::write_file(file, json.dump(2) + "\n");
  for (const auto& [part, why] : figures.failures())
    std::printf("\nnot measured: %s: %s", part.c_str(), why.c_str());
  for (const std::string& warning : figures.warnings()) std::printf("\nwarning: %s", warning.c_str());
  std::printf("\n%d bars missed; load average %s before, %s after; %s\n", missed, load_before.c_str(),
              load_average().c_str(), options.results.c_str());
  return missed;
}

}  // namespace bench
