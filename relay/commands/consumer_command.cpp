// `outboxd consumer`: what an operator does in a service's own database.

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

#include "relay/commands/command_line.hpp"
#include "relay/commands/consumer_database.hpp"
#include "relay/commands/consumer_dead_command.hpp"
#include "relay/commands/consumer_purge_command.hpp"
#include "sql/queries/consumer.hpp"

namespace outbox::commands {
namespace {

struct Upkeep {
  ConsumerDatabase database;
  int days_ahead = 7;
};

ExitCode maintain(const Upkeep& asked) {
  pg::Params params;
  params.i32(asked.days_ahead);
  auto rows = run_on(asked.database, sql::queries::consumer_maintain, params);
  std::int64_t made = 0;  // one a call
  for (; rows && rows->integer(0, 1) > 0;
       rows = run_on(asked.database, sql::queries::consumer_maintain, params))
    made += rows->integer(0, 1);
  if (!rows) return report(asked.database, rows.error());
  if (rows->boolean(0, 0)) {
    std::puts("another session is at it: nothing was done here");
    return ExitCode::ok;
  }
  std::printf("%lld partitions made, %lld dropped, %lld rows purged\n", static_cast<long long>(made),
              static_cast<long long>(rows->integer(0, 2)), static_cast<long long>(rows->integer(0, 3)));
  if (rows->integer(0, 4) == 0) return ExitCode::ok;
  std::fputs("outboxd: a lock held up a part of it: run it again later\n", stderr);
  return ExitCode::failed;
}

void declare_maintain(CLI::App& consumer, Action& chosen) {
  auto asked = std::make_shared<Upkeep>();
  CLI::App* command = consumer.add_subcommand(
      "maintain", "Make partitions of processed_msgs ahead, drop those beyond every consumer's horizon");
  declare_consumer_database(*command, asked->database);
  command->add_option("--partitions-ahead", asked->days_ahead, "Daily partitions made ahead")
      ->check(CLI::Range(0, 366))
      ->capture_default_str();
  command->callback([asked, &chosen] { chosen = [asked] { return maintain(*asked); }; });
}

}  // namespace

void declare_consumer(CLI::App& app, Action& chosen) {
  CLI::App* consumer = app.add_subcommand("consumer", "What consumers keep in a service's own database");
  consumer->require_subcommand(1);
  declare_maintain(*consumer, chosen);
  declare_consumer_dead(*consumer, chosen);
  declare_consumer_purge(*consumer, chosen);
}

}  // namespace outbox::commands
