#include "relay/commands/operation.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

#include "relay/commands/person.hpp"
#include "sql/queries/operator.hpp"

namespace outbox::commands {
namespace {

constexpr int batch_rows_max = 1000;
constexpr int batches_per_s = 10;  // a slow rate goes out evenly, not in one burst a second

}  // namespace

std::string Because::who() const {
  return by.empty() ? person() : by;
}

void declare_because(CLI::App& command, Because& because) {
  command.add_option("--reason", because.reason, "Why; it is kept")
      ->required()
      ->check([](const std::string& text) { return text.empty() ? "must say something" : ""; });
  command.add_option("--by", because.by, "Who, where that is not who runs the program")->type_name("NAME");
}

Error with_migrate_advice(Error error) {
  if (error.code == "42883" || error.code == "42P01")
    error.advice = "the database is older than this program: run `outboxd migrate` as the tables' owner";
  if (error.code == "42501")
    error.advice =
        "run `outboxd migrate --grants` as the tables' owner, and log in as outbox_relay or a member of "
        "outbox_operator";
  return error;
}

Result<std::int64_t> begin_operation(pg::Session& session, const std::string& quoted_schema,
                                     const std::string& action, const std::string& detail,
                                     const Because& because) {
  pg::Params params;
  params.text(action).untyped(detail).text(because.reason).text(because.who());
  const auto rows =
      session.exec(pg::fill_template(sql::queries::operation_begin, {{"schema", quoted_schema}}), params);
  if (!rows) return failure(with_migrate_advice(rows.error()));
  return rows->integer(0, 0);
}

Result<std::int64_t> in_batches(int rate, const std::function<Result<int>(int rows_max)>& batch) {
  const int rows_max = std::clamp(rate / batches_per_s, 1, batch_rows_max);
  std::int64_t total = 0;
  for (;;) {
    const auto begun = std::chrono::steady_clock::now();
    const auto rows = batch(rows_max);
    if (!rows) return failure(rows.error());
    total += *rows;
    if (*rows < rows_max) return total;
    std::this_thread::sleep_until(begun + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                              std::chrono::duration<double>(*rows) / rate));
  }
}

}  // namespace outbox::commands
