#pragma once
// A service's own database, where its consumers keep what they have processed: named on the command line,
// since outboxd's configuration knows the databases of outboxes only. Place: the first step of `outboxd
// consumer …`. Thread: main.

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "pg/session.hpp"
#include "relay/commands/exit_code.hpp"

namespace CLI {
class App;
}

namespace outbox::commands {

struct ConsumerDatabase {
  std::string uri;
  std::string schema{"public"};
};

/// `--uri`, also from the environment variable OUTBOX_CONSUMER_URI, and `--schema`.
void declare_consumer_database(CLI::App& command, ConsumerDatabase& database);

/// Connects and runs one statement of sql/queries with the schema filled in.
/// Errors: as pg::Session; where the tables are missing, with what to do.
[[nodiscard]] Result<pg::Rows> run_on(const ConsumerDatabase& database, std::string_view sql,
                                      const pg::Params& params);

/// "outboxd: …" on standard error; answers the exit code of `error`.
ExitCode report(const ConsumerDatabase& database, const Error& error);

}  // namespace outbox::commands
