#include "relay/commands/configured.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "pg/identifier.hpp"
#include "relay/commands/value_checks.hpp"

namespace outbox::commands {
namespace {

constexpr std::array default_files{"outboxd.yaml", "/etc/outboxd/outboxd.yaml"};
constexpr std::size_t faults_shown_max = 100;

ExitCode report_faults(const config::Faults& faults, const std::string& path) {
  const auto shown = std::min(faults.size(), faults_shown_max);
  for (std::size_t i = 0; i < shown; ++i) std::fprintf(stderr, "%s\n", faults[i].text(path).c_str());
  if (shown < faults.size()) std::fprintf(stderr, "and %zu more\n", faults.size() - shown);
  return ExitCode::usage;
}

}  // namespace

std::string config_path(const std::string& file) {
  if (!file.empty()) return file;
  for (const char* path : default_files) {
    if (::access(path, F_OK) == 0) return path;
  }
  return default_files.front();
}

tl::expected<config::Loaded, ExitCode> load_or_report(const std::string& file) {
  const std::string path = config_path(file);
  if (file.empty() && ::access(path.c_str(), F_OK) != 0) {
    std::fputs(
        "outboxd: there is neither ./outboxd.yaml nor /etc/outboxd/outboxd.yaml; name one with -c FILE, or "
        "start "
        "from `outboxd config sample`\n",
        stderr);
    return tl::unexpected(ExitCode::usage);
  }
  auto loaded = config::load_file(path, config::process_surroundings());
  if (!loaded) return tl::unexpected(report_faults(loaded.error(), path));
  if (const auto faults = value_faults(*loaded); !faults.empty())
    return tl::unexpected(report_faults(faults, path));
  return std::move(*loaded);
}

tl::expected<std::vector<config::Pipeline>, ExitCode> select_or_report(const config::Config& config,
                                                                       const std::string& name) {
  if (name.empty()) return config.pipelines;
  std::string known;
  for (const auto& pipeline : config.pipelines) {
    if (pipeline.name == name) return std::vector{pipeline};
    known.append(known.empty() ? "" : ", ").append(pipeline.name);
  }
  std::fprintf(stderr, "outboxd: there is no pipeline %s; there are %s\n", name.c_str(), known.c_str());
  return tl::unexpected(ExitCode::usage);
}

tl::expected<std::vector<config::Pipeline>, ExitCode> pipelines_or_report(const std::string& file,
                                                                          const std::string& name) {
  const auto loaded = load_or_report(file);
  if (!loaded) return tl::unexpected(loaded.error());
  return select_or_report(loaded->config, name);
}

std::string partition_column_of(const config::Pipeline& pipeline) {
  return pg::parse_name(pipeline.source.partition_column).value_or("");
}

ExitCode report(const std::string& pipeline, const Error& error) {
  std::fprintf(stderr, "outboxd: %s: %s\n", pipeline.c_str(), error.text().c_str());
  return exit_code_of(error);
}

}  // namespace outbox::commands
