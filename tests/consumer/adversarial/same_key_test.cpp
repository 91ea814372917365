// The same message delivered at once by many threads and processes: one effect.

#include <doctest/doctest.h>

#include <cstdio>
#include <memory>
#include <thread>

#include "letters.hpp"
#include "outbox/inbox.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/process.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

struct Delivered {
  int applied = 0, skipped = 0;
};

/// Four processes with five threads each, all at once.
Delivered deliver_from_four(const ServiceDatabase& db, const std::string& sleep_s,
                            const std::string& failures) {
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 4; ++i)
    processes.push_back(std::make_unique<Process>(
        OUTBOX_DELIVER, ProcessOptions{.args = {db.database.uri(), v7(1), "5", sleep_s, failures}}));
  Delivered sum;
  for (auto& process : processes) {
    const auto status = process->wait(Millis{60'000});
    INFO(process->errors());
    REQUIRE(status.code == 0);
    int applied = 0, skipped = 0;
    REQUIRE(std::sscanf(process->output().c_str(), "applied=%d skipped=%d", &applied, &skipped) == 2);
    sum.applied += applied;
    sum.skipped += skipped;
  }
  return sum;
}

}  // namespace

TEST_CASE("20 threads in 4 processes, the handler sleeps 2 s: one effect, nineteen duplicates") {
  ServiceDatabase db;
  const auto sum = deliver_from_four(db, "2", "0");
  CHECK(sum.applied == 1);
  CHECK(sum.skipped == 19);
  CHECK(db.effects() == 1);
}

TEST_CASE("20 threads in 4 processes, the first of each rolls back: another does it, once") {
  ServiceDatabase db;
  const auto sum = deliver_from_four(db, "0.2", "1");
  CHECK(sum.applied == 1);
  CHECK(sum.skipped == 19);
  CHECK(db.effects() == 1);
}

TEST_CASE("a hundred ids in crossed order, in eight batches at once, again and again: no deadlock surfaces") {
  ServiceDatabase db;
  constexpr int rounds = 5, batches = 8;
  std::atomic<int> applied = 0, unsettled = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::jthread> threads;
    for (int b = 0; b < batches; ++b)
      threads.emplace_back([&, b] {
        std::vector<Letter> letters;
        for (int i = 0; i < 100; ++i) {
          const int n = round * 100 + (b % 2 == 0 ? i : 99 - i);
          letters.push_back(letter(v7(n), "{}", n));
        }
        Inbox inbox(db.inbox());
        for (const auto& outcome : inbox.process(records(letters), record_effect)) {
          if (outcome.fate == Fate::applied) ++applied;
          if (!outcome.settled()) ++unsettled;
        }
      });
  }
  CHECK(applied == rounds * 100);
  CHECK(unsettled == 0);
  CHECK(db.effects() == rounds * 100);
  must(db.session.exec("SELECT pg_stat_force_next_flush()"));
  CHECK(db.number("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == 0);
}
