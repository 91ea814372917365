// The loop over the stand-in for Kafka and a real PostgreSQL: what a real group does rarely, at will.

#include "consumer/loop/consumer_loop.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "fake_subscription.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

/// A loop on a thread of its own.
class Running {
 public:
  Running(ServiceDatabase& db, FakeKafka& kafka, Handler handler, LoopOptions options = {})
      : subscription(kafka),
        inbox_(db.inbox()),
        loop_({&inbox_, 1}, subscription, counters, quiet(std::move(options))),
        thread_([this, handler = std::move(handler)] { loop_.run(loop_work(handler), stop_); }) {}
  ~Running() { stop(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  FakeSubscription subscription;
  LiveCounters counters;

 private:
  static LoopOptions quiet(LoopOptions options) {
    options.log = [](auto) {};
    if (options.commit_interval == LoopOptions{}.commit_interval) options.commit_interval = Millis{5};
    options.limits.backoff = {Millis{5}, Millis{50}};
    return options;
  }
  std::atomic<bool> stop_{false};
  Inbox inbox_;
  ConsumerLoop loop_;
  std::thread thread_;
};

void send_many(FakeKafka& kafka, int first, int count, int partitions) {
  for (int i = first; i < first + count; ++i) {
    auto one = letter(v7(i));
    one.partition = i % partitions;
    kafka.send(one);
  }
}

/// Holds a handler until it is opened.
struct Gate {
  std::atomic<bool> open{false};
  std::atomic<int> inside{0};
  void pass() {
    ++inside;
    eventually("the gate opens", [&] { return open.load(); });
  }
};

}  // namespace

TEST_CASE("an offset is committed only when its batch is") {
  ServiceDatabase db;
  FakeKafka kafka("transfers", 1);
  send_many(kafka, 0, 10, 1);
  Gate gate;
  Running running(db, kafka,
                  [&](Transaction& tx, const Message& m) {
                    record_effect(tx, m);
                    if (m.offset() == 9) gate.pass();
                  },
                  {.limits = {.batch_rows_max = 5}});
  eventually("the last batch is at work", [&] { return gate.inside == 1; });
  // Where a batch ends depends on how far the fetching was; the one at work has five records at most.
  eventually("the offset of the batch before", [&] { return kafka.committed(0) >= 5; });
  CHECK(kafka.committed(0) <= 9);
  gate.open = true;
  eventually("the offset of the batch at work", [&] { return kafka.committed(0) == 10; });
  CHECK(db.effects() == 10);
}

TEST_CASE("a revocation waits for the batch at work and commits its offset, and what is queued is given up") {
  ServiceDatabase db;
  FakeKafka kafka("transfers", 1);
  send_many(kafka, 0, 10, 1);
  Gate gate;
  Running running(db, kafka,
                  [&](Transaction& tx, const Message& m) {
                    record_effect(tx, m);
                    if (m.offset() == 4) gate.pass();
                  },
                  {.limits = {.batch_rows_max = 5}});
  eventually("the batch is at work", [&] { return gate.inside == 1; });
  running.subscription.revoke(0, Revoked::handed_over);
  for (const NextOffset& commit : kafka.commits()) CHECK(commit.next <= 4);
  gate.open = true;
  eventually("all is done after it came back", [&] { return kafka.committed(0) == 10; });
  const auto of_the_batch = [](const NextOffset& commit) { return commit.next >= 5 && commit.next <= 9; };
  CHECK(std::ranges::any_of(kafka.commits(), of_the_batch));
  CHECK(db.effects() == 10);
}

TEST_CASE("a partition that was lost commits nothing, and its messages come again as duplicates") {
  ServiceDatabase db;
  FakeKafka kafka("transfers", 1);
  send_many(kafka, 0, 10, 1);
  Gate gate;
  const auto hold_the_second_batch = [&](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    if (m.offset() == 9 && !gate.open) gate.pass();
  };
  Running running(db, kafka, hold_the_second_batch,
                  {.limits = {.batch_rows_max = 5}, .commit_interval = std::chrono::hours{1}});
  eventually("the second batch is at work", [&] { return gate.inside == 1; });
  const auto before = running.subscription.polls();
  running.subscription.revoke(0, Revoked::lost);
  eventually("it was lost", [&] { return running.subscription.polls() > before + 1; });
  gate.open = true;
  eventually("it came again", [&] { return running.counters.snapshot().duplicate >= 5; });
  eventually("all effects", [&] { return db.effects() == 10; });
  CHECK(kafka.commits().empty());
  running.stop();
  CHECK(kafka.committed(0) == 10);
  CHECK(db.effects() == 10);
}

TEST_CASE("a slow handler stops the fetching, never the polling, and the buffer stays within its limit") {
  ServiceDatabase db;
  FakeKafka kafka("transfers", 2);
  send_many(kafka, 0, 5000, 2);
  Gate gate;
  Running running(db, kafka,
                  [&](Transaction& tx, const Message& m) {
                    record_effect(tx, m);
                    if (!gate.open) gate.pass();
                  },
                  {.limits = {.batch_rows_max = 100, .buffer_rows_max = 300}});
  eventually("everything is paused", [&] { return running.subscription.paused().size() == 2; });
  const auto polls = running.subscription.polls();
  eventually("polling goes on", [&] { return running.subscription.polls() > polls + 5; });
  CHECK(running.subscription.fetched() <= 401);
  gate.open = true;
  eventually(
      "all is done", [&] { return kafka.committed(0) == 2500 && kafka.committed(1) == 2500; },
      Millis{60'000});
  CHECK(db.effects() == 5000);
  CHECK(running.subscription.paused().empty());
}

TEST_CASE("a partition whose message waits is paused, the other is not, and both end in order") {
  ServiceDatabase db;
  FakeKafka kafka("transfers", 2);
  send_many(kafka, 0, 20, 2);
  std::atomic<bool> broken = true;
  Running running(db, kafka, [&](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    if (broken && m.partition() == 0 && m.offset() == 3) throw Retry("not yet");
  });
  eventually("partition 0 is paused", [&] {
    return running.subscription.paused().contains({"transfers", 0});
  });
  send_many(kafka, 20, 20, 2);
  eventually("partition 1 goes on", [&] { return kafka.committed(1) == 20; });
  eventually("its own stands at the failing one", [&] { return kafka.committed(0) == 3; });
  broken = false;
  eventually("partition 0 goes on", [&] { return kafka.committed(0) == 20; });
  CHECK(db.number("SELECT count(*) FROM (SELECT off < lag(off) OVER (PARTITION BY part ORDER BY seq) AS "
                  "back FROM effect) o"
                  " WHERE back") == 0);
  CHECK(db.effects() == 40);
}

TEST_CASE("stop finishes the batch at work and commits its offset, and takes no other") {
  ServiceDatabase db;
  FakeKafka kafka("transfers", 1);
  send_many(kafka, 0, 10, 1);
  Gate gate;
  Running running(db, kafka,
                  [&](Transaction& tx, const Message& m) {
                    record_effect(tx, m);
                    if (m.offset() == 4) gate.pass();
                  },
                  {.limits = {.batch_rows_max = 5}});
  eventually("the batch is at work", [&] { return gate.inside == 1; });
  std::thread stopping([&] { running.stop(); });
  gate.open = true;
  stopping.join();
  CHECK(kafka.committed(0) >= 5);
  CHECK(kafka.committed(0) == db.effects());
}

TEST_CASE(
    "while the database is away every partition is paused and polling goes on, and then all takes effect "
    "once") {
  PostgresServer server;
  ServiceDatabase db({}, server.uri());
  FakeKafka kafka("transfers", 2);
  send_many(kafka, 0, 20, 2);
  Running running(db, kafka, record_effect);
  eventually("the first are done", [&] { return kafka.committed(0) == 10 && kafka.committed(1) == 10; });
  server.kill();
  send_many(kafka, 20, 20, 2);
  eventually("both are paused", [&] { return running.subscription.paused().size() == 2; });
  const auto polls = running.subscription.polls();
  eventually("polling goes on", [&] { return running.subscription.polls() > polls + 5; });
  CHECK(kafka.committed(0) == 10);
  server.start();
  eventually("the rest is done", [&] { return kafka.committed(0) == 20 && kafka.committed(1) == 20; });
  auto session = db.database.session();
  CHECK(must(session.exec("SELECT count(*) FROM effect")).integer(0, 0) == 40);
}
