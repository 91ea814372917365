// `outboxd consumer dead`: what a service's consumers could not apply, and what becomes of it.

#include "relay/commands/consumer_dead_command.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "relay/commands/command_line.hpp"
#include "relay/commands/consumer_database.hpp"
#include "relay/log/line.hpp"
#include "sql/queries/consumer.hpp"

namespace outbox::commands {
namespace {

namespace queries = sql::queries;

struct Asked {
  ConsumerDatabase database;
  std::string consumer;
  std::string reason;
  std::vector<std::int64_t> ids;
  std::int64_t after = 0;
  int limit = 50;
  bool all = false;
};

constexpr const char* columns[] = {"id",  "consumer", "msg_id",   "topic",   "partition", "offset",
                                   "key", "verdict",  "attempts", "created", "state",     "error"};

ExitCode list(const Asked& asked) {
  pg::Params params;
  asked.consumer.empty() ? params.null() : params.text(asked.consumer);
  params.boolean(asked.all).i32(asked.limit).i64(asked.after);
  const auto rows = run_on(asked.database, queries::consumer_dead_list, params);
  if (!rows) return report(asked.database, rows.error());
  for (int row = 0; row < rows->size(); ++row) {
    std::string line;
    for (int column = 0; column < rows->columns(); ++column)
      line += std::string(line.empty() ? "" : " ") + columns[column] + "=" +
              log::text_value(rows->text(row, column));
    std::puts(line.c_str());
  }
  if (rows->size() == asked.limit)
    std::printf("more: --after %.*s\n", static_cast<int>(rows->text(rows->size() - 1, 0).size()),
                rows->text(rows->size() - 1, 0).data());
  return ExitCode::ok;
}

ExitCode show(const Asked& asked) {
  ExitCode code = ExitCode::ok;
  for (const auto id : asked.ids) {
    const auto rows = run_on(asked.database, queries::consumer_dead_show, pg::Params{}.i64(id));
    if (!rows) return report(asked.database, rows.error());
    if (rows->empty()) {
      std::fprintf(stderr, "outboxd: there is no dead message %lld\n", static_cast<long long>(id));
      code = ExitCode::failed;
      continue;
    }
    std::printf("%s\n", std::string(rows->text(0, 0)).c_str());
  }
  return code;
}

/// Each id by itself: what could be done is done, and the exit code says that something could not.
ExitCode change(const Asked& asked, std::string_view sql, const char* done,
                const std::function<pg::Params(std::int64_t)>& params_of) {
  ExitCode code = ExitCode::ok;
  for (const auto id : asked.ids) {
    const auto rows = run_on(asked.database, sql, params_of(id));
    if (!rows) {
      code = worse(code, report(asked.database, rows.error()));
    } else if (rows->boolean(0, 0)) {
      std::printf("%lld: %s\n", static_cast<long long>(id), done);
    } else {
      std::fprintf(stderr, "outboxd: there is no dead message %lld, or it is resolved already\n",
                   static_cast<long long>(id));
      code = worse(code, ExitCode::failed);
    }
  }
  return code;
}

ExitCode retry(const Asked& asked) {
  return change(asked, queries::consumer_dead_retry, "a running consumer applies it, and its key's queue",
                [](std::int64_t id) { return pg::Params{}.i64(id); });
}

ExitCode discard(const Asked& asked) {
  return change(asked, queries::consumer_dead_discard, "discarded",
                [&](std::int64_t id) { return pg::Params{}.i64(id).text(asked.reason); });
}

CLI::App* declare_verb(CLI::App& dead, Action& chosen, const std::shared_ptr<Asked>& asked, const char* name,
                       const char* what, ExitCode (*run)(const Asked&)) {
  CLI::App* verb = dead.add_subcommand(name, what);
  declare_consumer_database(*verb, asked->database);
  verb->callback([asked, run, &chosen] { chosen = [asked, run] { return run(*asked); }; });
  return verb;
}

void declare_ids(CLI::App& verb, Asked& asked) {
  verb.add_option("ids", asked.ids, "As list shows them")->required()->type_name("ID");
}

}  // namespace

void declare_consumer_dead(CLI::App& consumer, Action& chosen) {
  CLI::App* dead = consumer.add_subcommand("dead", "Messages that could not be applied");
  dead->require_subcommand(1);
  auto asked = std::make_shared<Asked>();
  CLI::App* listing = declare_verb(*dead, chosen, asked, "list", "Those that wait, the oldest first", &list);
  listing->add_option("--consumer", asked->consumer, "Only this consumer's");
  listing->add_option("--after", asked->after, "Only ids above this one");
  listing->add_option("--limit", asked->limit)->check(CLI::Range(1, 100'000))->capture_default_str();
  listing->add_flag("--all", asked->all, "Resolved ones, too");
  declare_ids(*declare_verb(*dead, chosen, asked, "show", "All that is kept of it, as JSON", &show), *asked);
  declare_ids(*declare_verb(*dead, chosen, asked, "retry",
                            "Have a running consumer apply it, in the order of its key", &retry),
              *asked);
  CLI::App* giving_up = declare_verb(*dead, chosen, asked, "discard",
                                     "Give it up for good; what waits behind it goes on", &discard);
  declare_ids(*giving_up, *asked);
  giving_up->add_option("--reason", asked->reason, "Kept with it")->required();
}

}  // namespace outbox::commands
