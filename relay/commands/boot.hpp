#pragma once
// What `outboxd run` asks before it becomes a daemon.

#include <string>

#include "relay/commands/exit_code.hpp"
#include "relay/config/config.hpp"
#include "relay/log/log.hpp"

namespace outbox::commands {

/// "host:pid-random": differs between processes, and between two lives of one process.
[[nodiscard]] std::string fresh_instance();

/// The log as the file asks for it.
[[nodiscard]] log::Logger open_log(const config::Log& wanted);

/// Shape: whether the librdkafka that runs can keep the promise; an ERROR line where it cannot. Answers ok or
/// refused.
[[nodiscard]] ExitCode look_at_librdkafka(const log::Logger& logger);

/// Shape: each pipeline's database is asked once whether it can be worked with: password, database, table,
/// columns, privileges. One ERROR line for each that cannot; an unreachable one is a WARN, since the relay
/// waits for it. Blocks: a connect and a round trip each. Answers ok, or the worst code.
[[nodiscard]] ExitCode look_at_databases(const config::Config& config, const log::Logger& logger);

/// Shape: the daemon itself: runs every pipeline until SIGTERM or SIGINT, and reads `file` again at SIGHUP.
/// Blocks. Answers how it ended.
[[nodiscard]] ExitCode run_pipelines(const config::Config& config, const std::string& file,
                                     const log::Logger& logger);

}  // namespace outbox::commands
