// transfer-consumer URI KAFKA: a ledger in another database, kept from messages alone. The library's dedup
// row and what the handler writes are one transaction: a message that comes twice takes effect once.

#include "outbox/consumer.hpp"

#include <csignal>
#include <exception>
#include <iostream>

namespace {

void apply(outbox::Transaction& tx, const outbox::Message& message) {
  tx.send(
      "INSERT INTO account (id, balance) SELECT m.account, m.cents FROM json_to_record($1) m (account text, "
      "cents bigint)"
      " ON CONFLICT (id) DO UPDATE SET balance = account.balance + excluded.balance",
      message.body());
}

outbox::Consumer* running = nullptr;

}  // namespace

int main(int count, char** words) {
  if (count != 3) return std::cerr << "usage: transfer-consumer URI KAFKA\n", 2;
  try {
    outbox::Consumer consumer({.name = "ledger",
                               .postgres = words[1],
                               .kafka = {{"bootstrap.servers", words[2]}},
                               .topics = {"transfers"}});
    running = &consumer;
    std::signal(SIGTERM, [](int) { running->stop(); });
    std::signal(SIGINT, [](int) { running->stop(); });
    consumer.run(apply);
  } catch (const std::exception& error) {
    return std::cerr << "transfer-consumer: " << error.what() << '\n', 1;
  }
}
