// outbox-bench: how fast, how lean and how prompt outboxd is, beside the limits measured in the same run.

#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <thread>

#include "bench/drain.hpp"
#include "bench/large_rows.hpp"
#include "bench/latency.hpp"
#include "bench/long_transaction.hpp"
#include "bench/notify_cost.hpp"
#include "bench/poll_cost.hpp"
#include "bench/report.hpp"
#include "bench/scale.hpp"
#include "bench/supervise.hpp"
#include "bench/takeover.hpp"

namespace {

using bench::Figures;
using bench::Options;
using bench::Stage;

constexpr double busy_load = 0.5;  // a core

void add_options(CLI::App& app, Options& o, std::vector<std::string>& only) {
  app.add_option("--postgres", o.postgres,
                 "a superuser's uri, postgresql://user@host:port/database; else its own");
  app.add_option("--kafka", o.kafka, "HOST:PORT; else its own");
  app.add_option("--results", o.results, "the JSON file")->capture_default_str();
  app.add_option("--only", only, "some of: drain latency poll large takeover long notify scale");
  app.add_flag("--quick", o.quick, "one round, smaller numbers: less than two minutes");
  app.add_option("--rounds", o.rounds)->check(CLI::Range(1, 99));
  app.add_option("--rows", o.rows, "of the backlog")->check(CLI::Range(1'000, 50'000'000));
  app.add_option("--large-rows", o.large_rows, "of 1 MB")->check(CLI::Range(10, 100'000));
  app.add_option("--sent-rows", o.sent_rows, "beside a poll")->check(CLI::Range(1'000, 100'000'000));
  app.add_option("--passing-rows", o.passing_rows, "beside an idle transaction")
      ->check(CLI::Range(1'000, 50'000'000));
  app.add_option("--latency-s", o.latency_s, "seconds of each round")->check(CLI::Range(1, 600));
  app.add_option("--rate", o.rate, "rows a second while latency is measured")->check(CLI::Range(1, 100'000));
  app.add_option("--far-ms", o.far_ms, "round trip to a far database")->check(CLI::Range(2, 1'000));
  app.add_option("--idle-s", o.idle_s, "seconds without work")->check(CLI::Range(1, 600));
}

// What fails is reported as missing beside what did not.
void measure(const char* name, const std::vector<std::string>& only, Figures& figures,
             const std::function<void()>& run) {
  if (!only.empty() && std::ranges::find(only, name) == only.end()) return;
  try {
    run();
  } catch (const std::exception& error) {
    figures.fail(name, error.what());
  }
}

int run(int argc, char** argv) {
  CLI::App app("The relay's figures beside the limits of the same machine and minute.", "outbox-bench");
  Options options;
  std::vector<std::string> only;
  if (std::find(argv, argv + argc, std::string_view("--quick")) != argv + argc) bench::make_quick(options);
  add_options(app, options, only);
  CLI11_PARSE(app, argc, argv);

  if (options.postgres.empty() || options.kafka.empty())
    return bench::run_beside_servers(options, argc, argv);
  const std::string load_before = bench::load_average();
  Stage stage(options);
  Figures figures;
  if (std::stod(load_before) > busy_load * std::thread::hardware_concurrency())
    figures.warn("the machine was busy before the run began (load average " + load_before + ")");
  measure("drain", only, figures, [&] { bench::measure_drain(stage, options, figures); });
  measure("latency", only, figures, [&] { bench::measure_latency(stage, options, figures); });
  measure("poll", only, figures, [&] { bench::measure_poll_cost(stage, options, figures); });
  measure("large", only, figures, [&] { bench::measure_large_rows(stage, options, figures); });
  measure("takeover", only, figures, [&] { bench::measure_takeover(stage, options, figures); });
  measure("long", only, figures, [&] { bench::measure_long_transaction(stage, options, figures); });
  measure("notify", only, figures, [&] { bench::measure_notify_cost(stage, options, figures); });
  measure("scale", only, figures, [&] { bench::measure_scale(stage, options, figures); });
  bench::report(stage, options, figures, load_before);
  return figures.failures().empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "outbox-bench: " << error.what() << '\n';
    return 1;
  }
}
