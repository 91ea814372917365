// transfer-consumer-batches FILE: the same ledger as consumer.cpp, by set-based SQL: what is fresh in a batch
// becomes one statement. The options are in the file's section `consumer`.

#include <csignal>
#include <exception>
#include <iostream>
#include <span>
#include <string>

#include "outbox/config.hpp"
#include "outbox/consumer.hpp"

namespace {

// Accounts in one order, so that two batches at once never wait for each other in a circle.
void apply(outbox::Transaction& tx, std::span<const outbox::Message> messages) {
  std::string bodies = "[";
  for (const auto& message : messages) {
    if (!message.body()) throw outbox::Reject("a transfer has a body");
    bodies.append(bodies.size() > 1 ? "," : "").append(*message.body());
  }
  tx.exec(
      "INSERT INTO account (id, balance)"
      " SELECT m.account, sum(m.cents)::bigint FROM json_to_recordset($1) m (account text, cents bigint)"
      " GROUP BY m.account ORDER BY m.account"
      " ON CONFLICT (id) DO UPDATE SET balance = account.balance + excluded.balance",
      bodies.append("]"));
}

outbox::Consumer* running = nullptr;

}  // namespace

int main(int count, char** words) {
  if (count != 2) return std::cerr << "usage: transfer-consumer-batches FILE\n", 2;
  try {
    outbox::Consumer consumer(outbox::load_consumer_options(words[1]));
    running = &consumer;
    std::signal(SIGTERM, [](int) { running->stop(); });
    std::signal(SIGINT, [](int) { running->stop(); });
    consumer.run(outbox::SpanHandler(apply));
    const auto counted = consumer.counters();
    std::cout << "applied " << counted.fresh << " in " << counted.batches << " batches, refused "
              << counted.duplicate << '\n';
  } catch (const std::exception& error) {
    return std::cerr << "transfer-consumer-batches: " << error.what() << '\n', 1;
  }
}
