// `outboxd consumer purge`: forgets messages whose ids carry no time, which no horizon forgets.

#include "relay/commands/consumer_purge_command.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "pg/identifier.hpp"
#include "relay/commands/consumer_database.hpp"
#include "relay/commands/operation.hpp"
#include "sql/queries/consumer.hpp"

namespace outbox::commands {
namespace {

struct Asked {
  ConsumerDatabase database;
  std::string consumer;
  std::string before;
  Because because;
  int rate = 10'000;
  bool dry_run = false;
};

Result<std::string> purge(pg::Session& session, const std::string& schema, const Asked& asked) {
  const nlohmann::json detail{{"consumer", asked.consumer}, {"processed_before", asked.before}};
  const auto operation =
      begin_operation(session, schema, "purge",
                      detail.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), asked.because);
  if (!operation) return failure(operation.error());
  const std::string sql = pg::fill_template(sql::queries::consumer_purge, {{"schema", schema}});
  std::string above = "00000000-0000-0000-0000-000000000000";
  const auto total = in_batches(asked.rate, [&](int rows_max) -> Result<int> {
    pg::Params params;
    params.i64(*operation).text(asked.consumer).untyped(above).untyped(asked.before).i32(rows_max);
    const auto rows = session.exec(sql, params);
    if (!rows) return failure(rows.error());
    for (int i = 0; i < rows->size(); ++i) above = std::max(above, std::string{rows->text(i, 0)});
    return rows->size();
  });
  if (!total) return failure(total.error());
  return "forgot " + std::to_string(*total) + " ids without a time";
}

Result<std::string> count(pg::Session& session, const std::string& schema, const Asked& asked) {
  pg::Params params;
  params.text(asked.consumer).untyped(asked.before);
  const auto rows =
      session.exec(pg::fill_template(sql::queries::consumer_purge_count, {{"schema", schema}}), params);
  if (!rows) return failure(with_migrate_advice(rows.error()));
  return "would forget " + std::to_string(rows->integer(0, 0)) + " ids without a time";
}

ExitCode run(const Asked& asked) {
  const auto schema = pg::quote_identifier(asked.database.schema);
  if (!schema) return report(asked.database, schema.error());
  auto session =
      pg::Session::connect({.uri = asked.database.uri, .application_name = "outboxd consumer purge"});
  if (!session) return report(asked.database, session.error());
  const auto said = asked.dry_run ? count(*session, *schema, asked) : purge(*session, *schema, asked);
  if (!said) return report(asked.database, said.error());
  std::printf("%s: %s\n", asked.consumer.c_str(), said->c_str());
  return ExitCode::ok;
}

}  // namespace

void declare_consumer_purge(CLI::App& consumer, Action& chosen) {
  auto asked = std::make_shared<Asked>();
  CLI::App* command =
      consumer.add_subcommand("purge", "Forget processed messages whose ids carry no time: no horizon does");
  declare_consumer_database(*command, asked->database);
  command->add_option("--consumer", asked->consumer, "Of this consumer")->required()->type_name("NAME");
  command->add_option("--before", asked->before, "Processed before this time")->required()->type_name("TIME");
  command->add_option("--rate", asked->rate, "Rows a second at the most")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  declare_because(*command, asked->because);
  command->add_flag("--dry-run", asked->dry_run, "Say how many it would be, and change nothing");
  command->footer(
      "A copy that comes later is applied again: nothing tells it from a new message. Ids of version 7 carry "
      "a time and "
      "go by the consumer's horizon (outboxd consumer maintain).");
  command->callback([asked, &chosen] { chosen = [asked] { return run(*asked); }; });
}

}  // namespace outbox::commands
