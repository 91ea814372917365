// deliver URI MSG_ID THREADS SLEEP_S FAILURES: so many threads offer the same message at once, each with an
// inbox of its own, until it is settled. The handler writes its effect, sleeps in the database, and fails
// while fewer than FAILURES calls of this process's handler have. Prints how often it was applied and
// skipped.

#include <atomic>
#include <exception>
#include <iostream>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "outbox/inbox.hpp"

namespace {

struct Delivery {
  std::string uri, msg_id, sleep_s;
  int failures = 0;
  std::atomic<int> calls{0}, applied{0}, skipped{0};

  void handle(outbox::Transaction& tx, const outbox::Message& message) {
    tx.exec("INSERT INTO effect VALUES ($1, $2, $3, $4)", message.msg_id(), message.topic(),
            message.partition(), message.offset());
    tx.exec("SELECT pg_sleep($1::float8)", sleep_s);
    if (calls++ < failures) throw std::runtime_error("this one fails");
  }

  void offer(std::latch& start) {
    outbox::Inbox inbox({.name = "ledger", .postgres = uri});
    inbox.check();
    const outbox::Header id{"outbox-id", msg_id};
    outbox::Record record{.topic = "transfers", .body = "{}", .headers = {&id, 1}};
    start.arrive_and_wait();
    while (true) {
      const auto outcome =
          inbox.process(record, [this](outbox::Transaction& tx, const outbox::Message& m) { handle(tx, m); });
      if (outcome.fate == outbox::Fate::failed) ++record.attempt;
      if (!outcome.settled()) continue;
      ++(outcome.fate == outbox::Fate::applied ? applied : skipped);
      return;
    }
  }
};

}  // namespace

int main(int count, char** words) {
  if (count != 6) return std::cerr << "usage: deliver URI MSG_ID THREADS SLEEP_S FAILURES\n", 2;
  try {
    Delivery delivery{
        .uri = words[1], .msg_id = words[2], .sleep_s = words[4], .failures = std::stoi(words[5])};
    const int threads = std::stoi(words[3]);
    std::latch start(threads);
    {
      std::vector<std::jthread> offering;
      for (int i = 0; i < threads; ++i) offering.emplace_back([&] { delivery.offer(start); });
    }
    std::cout << "applied=" << delivery.applied << " skipped=" << delivery.skipped << "\n";
  } catch (const std::exception& error) {
    return std::cerr << error.what() << '\n', 1;
  }
}
