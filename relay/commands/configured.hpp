#pragma once
// The first step of most commands: the configuration, wholly checked, or its faults on standard error.

#include <tl/expected.hpp>

#include <string>
#include <vector>

#include "relay/commands/exit_code.hpp"
#include "relay/config/load.hpp"

namespace outbox::commands {

/// Shape: the file that `-c` named (or the first default that exists), also checked by those who use its
/// values: libpq reads the URIs, librdkafka the properties, and table names must be names. Errors: `usage`,
/// after every fault has been printed.
[[nodiscard]] tl::expected<config::Loaded, ExitCode> load_or_report(const std::string& file);

/// The file that is read where `-c` gives `file`, which may be empty.
[[nodiscard]] std::string config_path(const std::string& file);

/// The pipelines that `--pipeline` selects: all where it is empty. Errors: `usage`: no such pipeline;
/// printed.
[[nodiscard]] tl::expected<std::vector<config::Pipeline>, ExitCode> select_or_report(
    const config::Config& config, const std::string& name);

/// Both, for a command that needs nothing else of the file.
[[nodiscard]] tl::expected<std::vector<config::Pipeline>, ExitCode> pipelines_or_report(
    const std::string& file, const std::string& name);

/// The column in which a row names its partition, as the database has its name; empty: none.
[[nodiscard]] std::string partition_column_of(const config::Pipeline& pipeline);

/// "outboxd: payments: no such table …" on standard error; answers the exit code of `error`.
ExitCode report(const std::string& pipeline, const Error& error);

}  // namespace outbox::commands
