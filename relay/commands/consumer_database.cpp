#include "relay/commands/consumer_database.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>

#include "pg/identifier.hpp"

namespace outbox::commands {

void declare_consumer_database(CLI::App& command, ConsumerDatabase& database) {
  command.add_option("--uri", database.uri, "The service's own database, as a libpq URI")
      ->envname("OUTBOX_CONSUMER_URI")
      ->required();
  command.add_option("--schema", database.schema, "Where processed_msgs is; case matters")
      ->capture_default_str();
}

Result<pg::Rows> run_on(const ConsumerDatabase& database, std::string_view sql, const pg::Params& params) {
  const auto schema = pg::quote_identifier(database.schema);
  if (!schema) return failure(schema.error());
  auto session = pg::Session::connect({.uri = database.uri, .application_name = "outboxd consumer"});
  if (!session) return failure(std::move(session.error()));
  auto rows = session->exec(pg::fill_template(sql, {{"schema", *schema}}), params);
  if (rows) return rows;
  Error error = std::move(rows.error());
  if (error.code == "42P01" || error.code == "42883" || error.code == "3F000")
    error.advice = "the consumer's tables are not there: run `outboxd migrate` on this database";
  return failure(std::move(error));
}

ExitCode report(const ConsumerDatabase& database, const Error& error) {
  std::fprintf(stderr, "outboxd: schema %s: %s\n", database.schema.c_str(), error.text().c_str());
  return exit_code_of(error);
}

}  // namespace outbox::commands
