// outbox-bench-consumer: what deduplication costs, what batches gain, and what a hundred million rows change.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "bench/consumer/measure.hpp"

namespace {

struct Options {
  std::string results = "consumer.json";
  int rounds = 5;
  int messages = 10'000;
  std::int64_t processed_rows = 4'000'000;
};

struct Bar {
  const char* name;
  const char* law;
  double limit;
  bool at_least;
};
constexpr Bar bars[] = {{"batch_speedup", "batches over one by one", 5, true},
                        {"dedup_overhead_percent", "time over the same handler without dedup", 30, false},
                        {"growth_ratio", "a claim with rows over one without", 2, false}};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

using Rounds = std::map<std::string, std::vector<double>>;

struct Way {
  bench::Ledger how;
  const char* suffix;  // of its figures' names
};
constexpr Way ways[] = {{bench::Ledger::one_answer, ""},
                        {bench::Ledger::no_answer, "_no_answer"},
                        {bench::Ledger::all_answers, "_all_answers"}};

// Everything that is compared alternates within a round, so that the machine's mood meets all of it.
void measure_paths(bench::LedgerStage& stage, bench::Numbers& numbers, const Options& o, Rounds& rounds) {
  for (int round = 0; round < o.rounds; ++round) {
    for (const auto& [how, suffix] : ways) {
      const auto note = [&](const std::string& name, double value) {
        rounds[name + suffix].push_back(value);
      };
      const double single = bench::one_by_one_per_s(stage, numbers, std::max(1, o.messages / 5), how);
      const double without = bench::without_dedup_per_s(stage, numbers, o.messages, how);
      const double batched = bench::batches_per_s(stage, numbers, o.messages, how);
      note("one_by_one_per_s", single);
      note("without_dedup_per_s", without);
      note("batches_per_s", batched);
      note("batch_speedup", batched / single);
      note("dedup_overhead_percent", 100 * (without / batched - 1));
      std::fprintf(stderr, "round %d%s: one by one %.0f/s, batches %.0f/s, without dedup %.0f/s\n", round + 1,
                   suffix, single, batched, without);
    }
    const double spans = bench::spans_per_s(stage, numbers, o.messages);
    rounds["spans_per_s"].push_back(spans);
    rounds["span_speedup"].push_back(spans / rounds["one_by_one_per_s"].back());
    std::fprintf(stderr, "round %d: spans %.0f/s\n", round + 1, spans);
  }
}

void measure_growth(bench::Numbers& numbers, const Options& o, Rounds& rounds, nlohmann::json& growth) {
  constexpr int batches = 60;
  bench::LedgerStage small, large;
  static_cast<void>(bench::claim_times(small, large, numbers, batches));  // the first ones meet cold pages
  std::int64_t there = 0;
  for (const auto rows : {o.processed_rows / 10, o.processed_rows - o.processed_rows / 10}) {
    large.fill_processed(rows);
    there += rows;
    const auto [without, with] = bench::claim_times(small, large, numbers, batches);
    growth.push_back({{"processed_rows", there}, {"claim_ms", with}, {"claim_ms_without", without}});
    rounds["growth_ratio"] = {with / without};
    std::fprintf(stderr, "claim of %d with %lld rows: %.2f ms, with none: %.2f ms\n", bench::batch_rows,
                 static_cast<long long>(there), with, without);
  }
}

int report(const Options& o, const Rounds& rounds, const nlohmann::json& growth,
           const std::string& postgres) {
  nlohmann::json out{{"postgres", postgres},
                     {"messages", o.messages},
                     {"batch_rows", bench::batch_rows},
                     {"processed_rows", o.processed_rows},
                     {"growth", growth},
                     {"rounds", rounds}};
  for (const auto& [name, values] : rounds) out[name] = median(values);
  for (const auto& bar : bars) {
    const double value = out[bar.name];
    const bool met = bar.at_least ? value >= bar.limit : value <= bar.limit;
    out["bars"][bar.name] = {{"limit", bar.limit}, {"met", met}};
    std::printf("%-24s %8.2f  %s %.0f %s  (%s)\n", bar.name, value, bar.at_least ? "at least" : "at most ",
                bar.limit, met ? "met" : "MISSED", bar.law);
  }
  if (const auto folder = std::filesystem::path(o.results).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder);
  std::ofstream(o.results) << out.dump(2) << '\n';
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app("What deduplication costs, what batches gain, and what the size of processed_msgs changes.",
               "outbox-bench-consumer");
  Options o;
  app.add_option("--results", o.results, "the JSON file")->capture_default_str();
  app.add_option("--rounds", o.rounds)->check(CLI::Range(1, 99))->capture_default_str();
  app.add_option("--messages", o.messages, "of each path in a round")
      ->check(CLI::Range(1'000, 10'000'000))
      ->capture_default_str();
  app.add_option("--processed-rows", o.processed_rows, "in the table at the end of the growth part")
      ->check(CLI::Range(std::int64_t{1'000}, std::int64_t{1'000'000'000}))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  bench::LedgerStage stage;
  bench::Numbers numbers;
  Rounds rounds;
  nlohmann::json growth = nlohmann::json::array();
  measure_paths(stage, numbers, o, rounds);
  measure_growth(numbers, o, rounds, growth);
  return report(o, rounds, growth, stage.postgres_version());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "outbox-bench-consumer: " << error.what() << '\n';
    return 1;
  }
}
