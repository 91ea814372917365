// `outboxd status`: one look, or one every interval.

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "relay/commands/command_line.hpp"
#include "relay/commands/configured.hpp"
#include "relay/commands/status/status.hpp"

namespace outbox::commands {
namespace {

constexpr const char* home_and_clear = "\x1b[H\x1b[2J";

struct Asked {
  std::string file;
  std::string pipeline;
  int interval_s = 1;
  bool watch = false;
  bool json = false;
  bool exact = false;
};

// Keeps its sessions between looks; a broken one is made again at the next.
class Looker {
 public:
  explicit Looker(Counting counting) : counting_(counting) {}

  Result<StatusReport> look(const config::Pipeline& pipeline) {
    const auto table = pg::parse_table_name(pipeline.source.table);
    if (!table) return failure(table.error());
    auto it = sessions_.find(pipeline.name);
    if (it == sessions_.end()) {
      pg::ConnectOptions connect;
      connect.uri = pipeline.postgres.uri;
      connect.application_name = "outboxd status";
      auto session = pg::Session::connect(connect);
      if (!session) return failure(std::move(session.error()));
      it = sessions_.emplace(pipeline.name, std::move(*session)).first;
    }
    auto report = read_status(it->second, *table, counting_);
    if (it->second.broken()) sessions_.erase(it);
    return report;
  }

 private:
  Counting counting_;
  std::map<std::string, pg::Session> sessions_;
};

// What is good goes to standard output at once and whole, so that a redrawn screen does not flicker.
ExitCode look_at_all(const Asked& asked, Looker& looker, const std::vector<config::Pipeline>& pipelines,
                     bool redraw) {
  ExitCode code = ExitCode::ok;
  std::string out = redraw ? home_and_clear : "";
  for (const auto& pipeline : pipelines) {
    const auto status = looker.look(pipeline);
    if (status) {
      out += asked.json ? status_json(pipeline.name, *status) + "\n" : status_text(pipeline.name, *status);
    } else {
      code = worse(code, report(pipeline.name, status.error()));
    }
  }
  const bool written = std::fputs(out.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return written ? code : ExitCode::failed;
}

ExitCode status(const Asked& asked) {
  const auto pipelines = pipelines_or_report(asked.file, asked.pipeline);
  if (!pipelines) return pipelines.error();
  Looker looker(asked.exact ? Counting::exact : Counting::cheap);
  const bool redraw = asked.watch && !asked.json && ::isatty(STDOUT_FILENO) == 1;
  ExitCode code = look_at_all(asked, looker, *pipelines, redraw);
  while (asked.watch && code != ExitCode::failed) {
    std::this_thread::sleep_for(std::chrono::seconds(asked.interval_s));
    code = look_at_all(asked, looker, *pipelines, redraw);
  }
  return code;
}

}  // namespace

void declare_status(CLI::App& app, Action& chosen) {
  auto asked = std::make_shared<Asked>();
  CLI::App* command =
      app.add_subcommand("status", "Counts by status, oldest waiting row, rate, owners and holds");
  declare_config_file(*command, asked->file);
  declare_pipeline(*command, asked->pipeline);
  command->add_flag("--watch", asked->watch, "Look again until interrupted; redraws on a terminal");
  command->add_option("--interval", asked->interval_s, "Seconds between two looks")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  command->add_flag("--json", asked->json, "One JSON object a pipeline and look");
  command->add_flag("--exact", asked->exact, "Count sent rows instead of estimating: reads the whole table");
  command->callback([asked, &chosen] { chosen = [asked] { return status(*asked); }; });
}

}  // namespace outbox::commands
