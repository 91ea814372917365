// A downstream service for tests that kill it: applies messages {"transfer": id, "account": name, "amount":
// cents} to its ledger, and makes its two tables where they are missing.
//
//   ledger_entry (seq, transfer, account, amount)   one row for each message, in the order of application
//   ledger_account (account, balance)               the sum of them
//
// A message applied twice shows as a doubled (transfer, account, amount) and as a wrong balance: nothing in
// these tables prevents it.

#include <csignal>
#include <future>
#include <iostream>
#include <string>

#include "base/crash_point.hpp"
#include "outbox/consumer.hpp"

namespace {

outbox::Consumer* running = nullptr;

constexpr const char* usage =
    "usage: ledger_consumer --postgres URI --kafka HOST:PORT --topic NAME [--topic NAME …] [--name NAME]\n"
    "                       [--commit-interval-ms N] [--batch-rows N] [--kafka-property NAME=VALUE …]\n"
    "                       [--workers N] [--order partition|key] [--offsets kafka|database] [--horizon "
    "checked|unchecked]\n"
    "                       [--broken-offset N]: its handler never succeeds there\n"
    "                       [--stuck-offset N]: its handler does not come back from there\n";

std::int64_t broken_offset = -1;
std::int64_t stuck_offset = -1;

void apply(outbox::Transaction& tx, const outbox::Message& message) {
  if (message.offset() == broken_offset) throw outbox::Retry("broken, as the test wants it");
  if (message.offset() == stuck_offset) std::promise<void>().get_future().wait();
  const auto entry = tx.exec(
      "INSERT INTO ledger_entry (transfer, account, amount)"
      " SELECT m->>'transfer', m->>'account', (m->>'amount')::bigint FROM (SELECT $1::jsonb AS m) AS message"
      " RETURNING account, amount",
      message.body());
  outbox::crash_here(outbox::CrashPoint::consumer_mid_handler);
  tx.exec(
      "INSERT INTO ledger_account (account, balance) VALUES ($1, $2)"
      " ON CONFLICT (account) DO UPDATE SET balance = ledger_account.balance + excluded.balance",
      entry.text(0, 0), entry.text(0, 1));
}

/// The tables are made by a first transaction of the service's own, as a deployment would.
void make_tables(const outbox::InboxOptions& options) {
  outbox::Inbox inbox(options);
  const outbox::Header id{"id", "ledger tables"};
  const outbox::Record record{.topic = "deployment", .headers = {&id, 1}};
  const auto outcome = inbox.process(record, [](outbox::Transaction& tx, const outbox::Message&) {
    tx.exec(
        "CREATE TABLE IF NOT EXISTS ledger_entry (seq bigint GENERATED ALWAYS AS IDENTITY, transfer text NOT "
        "NULL,"
        " account text NOT NULL, amount bigint NOT NULL)");
    tx.exec("CREATE TABLE IF NOT EXISTS ledger_account (account text PRIMARY KEY, balance bigint NOT NULL)");
  });
  if (!outcome.settled()) throw outbox::ConsumerError(outcome.reason);
}

outbox::ConsumerOptions parse(int count, char** arguments) {
  outbox::ConsumerOptions options{.name = "ledger"};
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string option = arguments[i], value = arguments[i + 1];
    if (option == "--postgres") options.postgres = value;
    if (option == "--kafka") options.kafka["bootstrap.servers"] = value;
    if (option == "--topic") options.topics.push_back(value);
    if (option == "--name") options.name = value;
    if (option == "--commit-interval-ms")
      options.commit_interval = std::chrono::milliseconds(std::stoi(value));
    if (option == "--batch-rows") options.batch_rows_max = std::stoi(value);
    if (option == "--workers") options.workers = std::stoi(value);
    if (option == "--order" && value == "key") options.order = outbox::Order::key;
    if (option == "--offsets" && value == "database") options.offsets = outbox::Offsets::database;
    if (option == "--horizon" && value == "unchecked")
      options.horizon_check = outbox::HorizonCheck::unchecked;
    if (option == "--broken-offset") broken_offset = std::stoll(value);
    if (option == "--stuck-offset") stuck_offset = std::stoll(value);
    if (option == "--kafka-property")
      options.kafka[value.substr(0, value.find('='))] = value.substr(value.find('=') + 1);
  }
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const auto options = parse(count, arguments);
    outbox::Consumer consumer(options);
    make_tables({.name = "ledger-tables", .postgres = options.postgres});
    running = &consumer;
    std::signal(SIGTERM, [](int) { running->stop(); });
    std::signal(SIGINT, [](int) { running->stop(); });
    consumer.run(apply);
    const auto counted = consumer.counters();
    std::cout << "fresh=" << counted.fresh << " duplicate=" << counted.duplicate
              << " conflict=" << counted.conflict << " dead=" << counted.dead
              << " retried=" << counted.retried << " batches=" << counted.batches << "\n";
    return 0;
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n" << usage;
    return 1;
  }
}
