// outbox-demo: the main job on real input, and its proof. Without a role it conducts; the programs that it
// starts and kills are roles of this same program, and outboxd.

#include <CLI/CLI.hpp>

#include <iostream>

#include "examples/demo/bank.hpp"
#include "examples/demo/conductor.hpp"
#include "examples/demo/ledger.hpp"

namespace {

void add_demo_options(CLI::App& app, demo::DemoOptions& o) {
  app.add_option("--kafka", o.kafka,
                 "embedded, real (a broker of its own; needs Java and Maven), or HOST:PORT")
      ->capture_default_str();
  app.add_option("--transfers", o.transfers, "how many transfers are attempted")
      ->check(CLI::Range(100, 60'000))
      ->capture_default_str();
  app.add_option("--accounts", o.accounts, "between how many accounts")
      ->check(CLI::Range(2, 10'000))
      ->capture_default_str();
  app.add_option("--connections", o.connections, "of the payment core")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--rate", o.rate, "transfers a second; 0: as fast as it goes")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--relay-kills", o.relay_kills, "kill -9 of outboxd")
      ->check(CLI::Range(0, 50))
      ->capture_default_str();
  app.add_option("--ledger-kills", o.ledger_kills, "kill -9 of the ledger")
      ->check(CLI::Range(0, 50))
      ->capture_default_str();
  app.add_option("--resends", o.resends, "messages that are sent again on purpose")
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of the traffic and the strikes")->capture_default_str();
}

CLI::App* add_core(CLI::App& app, demo::CoreOptions& o) {
  CLI::App* core = app.add_subcommand("core", "")->group("");
  core->add_option("--postgres", o.postgres)->required();
  core->add_option("--topic", o.topic)->required();
  core->add_option("--transfers", o.transfers)->required();
  core->add_option("--accounts", o.accounts)->required();
  core->add_option("--connections", o.connections);
  core->add_option("--rate", o.rate);
  core->add_option("--seed", o.seed);
  return core;
}

CLI::App* add_ledger(CLI::App& app, demo::LedgerOptions& o) {
  CLI::App* ledger = app.add_subcommand("ledger", "")->group("");
  ledger->add_option("--postgres", o.postgres)->required();
  ledger->add_option("--kafka", o.kafka)->required();
  ledger->add_option("--topic", o.topic)->required();
  ledger->add_option("--session-timeout", o.session_timeout_ms);
  return ledger;
}

int run(int argc, char** argv) {
  CLI::App app("The main job on real input: 10,000 transfers, kill -9 of relay and consumer, and the proof.",
               "outboxd demo");
  demo::DemoOptions options;
  demo::CoreOptions core_options;
  demo::LedgerOptions ledger_options;
  add_demo_options(app, options);
  const CLI::App* core = add_core(app, core_options);
  const CLI::App* ledger = add_ledger(app, ledger_options);
  CLI11_PARSE(app, argc, argv);

  if (core->parsed()) return demo::run_core(core_options), 0;
  if (ledger->parsed()) return demo::run_ledger(ledger_options), 0;
  return demo::conduct(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "outbox-demo: " << error.what() << '\n';
    return 1;
  }
}
