#include "examples/demo/ledger.hpp"

#include <csignal>
#include <iostream>
#include <thread>

#include "examples/demo/bank.hpp"
#include "outbox/consumer.hpp"
#include "tests/support/postgres.hpp"

namespace demo {
namespace {

using outbox::pg::Params;
using outbox::pg::Session;
using outbox::test::must;

// No key on (transfer, account): a second application of a message would be seen, not prevented.
constexpr std::string_view ledger_tables = R"sql(
  CREATE ROLE ledger LOGIN;
  GRANT outbox_consumer TO ledger;
  CREATE SCHEMA ledger AUTHORIZATION ledger;
  SET ROLE ledger;
  CREATE TABLE ledger.account (
    id           int    PRIMARY KEY,
    balance      bigint NOT NULL,
    last_move    bigint NOT NULL DEFAULT 0,
    out_of_order bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
  CREATE TABLE ledger.entry (
    transfer bigint NOT NULL,
    account  int    NOT NULL,
    amount   bigint NOT NULL);
  RESET ROLE;
)sql";

constexpr std::string_view apply_movement = R"sql(
  WITH movement AS (
    SELECT * FROM json_to_record($1::json) AS m (transfer bigint, account int, amount bigint, move bigint)
  ), entry AS (
    INSERT INTO ledger.entry (transfer, account, amount) SELECT transfer, account, amount FROM movement
  )
  UPDATE ledger.account a
  SET balance = a.balance + m.amount, last_move = m.move,
      out_of_order = a.out_of_order + (m.move <> a.last_move + 1)::int
  FROM movement m WHERE a.id = m.account
)sql";

void apply(outbox::Transaction& tx, const outbox::Message& message) {
  if (tx.exec(apply_movement, message.body()).affected() != 1) throw outbox::Reject("no such account");
}

outbox::Consumer* running = nullptr;

extern "C" void on_terminate(int) {
  if (running) running->stop();
}

void print_counters(const std::stop_token& stop, const outbox::Consumer& consumer) {
  std::uint64_t printed = 0;
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::uint64_t refused = consumer.counters().duplicate;
    if (refused != printed) std::cout << "refused " << refused << std::endl;
    printed = refused;
  }
}

}  // namespace

void open_ledger(Session& owner, int accounts) {
  must(owner.exec_script(ledger_tables));
  must(owner.exec("INSERT INTO ledger.account (id, balance) SELECT n, $2 FROM generate_series(1, $1) n",
                  Params().i32(accounts).i64(opening_balance)));
}

std::string ledger_group(const std::string& topic) {
  return "ledger-of-" + topic;
}

void run_ledger(const LedgerOptions& options) {
  const int timeout_ms = options.session_timeout_ms;
  outbox::Consumer consumer({.name = "ledger",
                             .postgres = options.postgres,
                             .kafka = {{"bootstrap.servers", options.kafka},
                                       {"group.id", ledger_group(options.topic)},
                                       {"session.timeout.ms", std::to_string(timeout_ms)},
                                       {"heartbeat.interval.ms", std::to_string(timeout_ms / 6)}},
                             .topics = {options.topic},
                             // The mock cluster keeps no time and describes no topic.
                             .horizon_check = outbox::HorizonCheck::unchecked});
  running = &consumer;
  std::signal(SIGTERM, on_terminate);
  std::signal(SIGINT, on_terminate);
  const std::jthread printer([&](const std::stop_token& stop) { print_counters(stop, consumer); });
  consumer.run(apply);
}

}  // namespace demo
