// `outboxd config check | show | docs | metrics | sample`.

#include <CLI/CLI.hpp>
#include <librdkafka/rdkafka.h>

#include <cstdio>
#include <memory>
#include <string>

#include "relay/commands/command_line.hpp"
#include "relay/commands/configured.hpp"
#include "relay/config/print.hpp"
#include "relay/core/kafka/version.hpp"
#include "relay/metrics/metrics_manual.hpp"

namespace outbox::commands {
namespace {

ExitCode print(const std::string& text) {
  return std::fputs(text.c_str(), stdout) < 0 ? ExitCode::failed : ExitCode::ok;
}

std::string library_remark() {
  const auto verdict = relay::judge_kafka_version(rd_kafka_version());
  if (verdict.notes.empty()) return "";
  const char* means = verdict.refused ? "run will refuse" : "mind";
  return "librdkafka " + std::string(rd_kafka_version_str()) + ", " + means + ": " + verdict.text() + "\n";
}

// What an operator should have decided knowingly.
std::string remarks(const config::Pipeline& pipeline) {
  std::string out;
  if (pipeline.source.after_sent == relay::AfterSent::erase) {
    out +=
        "  after_sent: delete gives up replay, reconciliation, and protection against a broker that loses "
        "what it "
        "acknowledged\n";
  }
  if (pipeline.source.on_dead == relay::OnDead::let_pass) {
    out += "  on_dead: continue lets later messages of a key pass a dead one\n";
  }
  return out;
}

ExitCode check(const std::string& file) {
  const auto loaded = load_or_report(file);
  if (!loaded) return loaded.error();
  std::string out = config_path(file) + ": valid\n";
  for (const auto& pipeline : loaded->config.pipelines) {
    out += "pipeline " + pipeline.name + ": " + pipeline.source.table + " to " +
           pipeline.kafka.at("bootstrap.servers") + "\n" + remarks(pipeline);
  }
  return print(out + library_remark());
}

ExitCode show(const std::string& file) {
  const auto loaded = load_or_report(file);
  if (!loaded) return loaded.error();
  return print("# " + config_path(file) + "\n" + config::show(*loaded, config::Secrets::masked));
}

void declare(CLI::App& config, const std::string& name, const std::string& help,
             ExitCode (*act)(const std::string&), Action& chosen) {
  auto file = std::make_shared<std::string>();
  CLI::App* command = config.add_subcommand(name, help);
  declare_config_file(*command, *file);
  command->callback([file, act, &chosen] { chosen = [file, act] { return act(*file); }; });
}

}  // namespace

void declare_config(CLI::App& app, Action& chosen) {
  CLI::App* config = app.add_subcommand("config", "Check, show and explain the configuration");
  config->require_subcommand(1);
  declare(*config, "check", "Name every fault of the file, with line and column", check, chosen);
  declare(*config, "show", "Print what is in effect and where each value comes from; secrets are masked",
          show, chosen);
  config->add_subcommand("docs", "Print docs/configuration.md")->callback([&chosen] {
    chosen = [] { return print(config::docs() + exit_codes_markdown()); };
  });
  config->add_subcommand("metrics", "Print docs/metrics.md")->callback([&chosen] {
    chosen = [] { return print(relay::metrics_manual()); };
  });
  config->add_subcommand("sample", "Print config/outboxd.yaml, a file to start from")->callback([&chosen] {
    chosen = [] { return print(config::sample()); };
  });
}

}  // namespace outbox::commands
