// Includes every public header and makes the linker resolve what a service uses. With a libpq URI and an
// address of Kafka it runs; without, it shows that options are checked.
#include <outbox/config.hpp>
#include <outbox/consumer.hpp>
#include <outbox/foreign_id.hpp>
#include <outbox/handler.hpp>
#include <outbox/inbox.hpp>
#include <outbox/message.hpp>
#include <outbox/metrics.hpp>
#include <outbox/prometheus.hpp>
#include <outbox/transaction.hpp>
#include <outbox/uuid.hpp>

#include <csignal>
#include <iostream>

namespace {
outbox::Consumer* running = nullptr;
}

int main(int count, char** arguments) {
  if (count < 3) {
    try {
      outbox::Consumer(
          {.name = "ledger", .kafka = {{"enable.auto.commit", "true"}}, .topics = {"transfers"}});
    } catch (const outbox::ConsumerError& e) {
      std::cout << to_string(outbox::foreign_id("order-4711")) << "\n"
                << outbox::id_from_json({"/order"})({.body = R"({"order":1})"}).value_or("") << "\n"
                << e.what() << "\n";
      return 0;
    }
    return 1;
  }
  outbox::Consumer consumer({.name = "ledger",
                             .postgres = arguments[1],
                             .kafka = {{"bootstrap.servers", arguments[2]}},
                             .topics = {"transfers"}});
  running = &consumer;
  std::signal(SIGTERM, [](int) { running->stop(); });
  consumer.run([](outbox::Transaction& tx, const outbox::Message& message) {
    if (!message.key()) throw outbox::Reject("a transfer needs an account");
    const auto rows = tx.exec("UPDATE account SET balance = balance + $2 WHERE id = $1 RETURNING balance",
                              message.key(), 1);
    if (rows.empty()) throw outbox::Retry("the account is not there yet");
    tx.publish("booked", message.key(), std::string(R"({"balance":)") + rows.get<std::string>(0, 0) + "}");
  });
}
