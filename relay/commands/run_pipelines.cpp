#include "relay/commands/boot.hpp"

namespace outbox::commands {

ExitCode run_pipelines(const config::Config&, const log::Logger& logger) {
  logger.error("relay_missing", {{"why", "this build has no relay in it"}});
  return ExitCode::failed;
}

}  // namespace outbox::commands
