#include <doctest/doctest.h>

#include <atomic>
#include <future>

#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

constexpr int old_days = 8;

void make_old_days(RelayRig& rig) {
  for (int day = 30; day < 30 + old_days; ++day) {
    const std::string ago = std::to_string(day);
    rig.ask(
        std::string("SELECT outbox_make_partition('outbox_msg', 'outbox_msg_default', (now() AT TIME ZONE ")
            .append("'UTC')::date - ")
            .append(ago)
            .append(", 'fillfactor = 50')"));
    rig.ask(std::string(
                "INSERT INTO outbox_msg (topic, status, created_at, sent_at) SELECT 't', 'SENT', day, day ")
                .append("FROM (SELECT now() - interval '")
                .append(ago)
                .append(" days' AS day) d, generate_series(1, 5000)"));
  }
}

struct Business {
  std::atomic<bool> over = false;
  std::atomic<std::int64_t> rows = 0;
  std::atomic<std::int64_t> refused = 0;  // lock waits of more than a second, among others
  std::atomic<std::int64_t> longest_ms = 0;

  // Ten rows a transaction, every eight milliseconds; what waits for a lock for a second fails.
  void insert(RelayRig& rig, const std::string& topic) {
    auto session = must(pg::Session::connect({.uri = rig.uri()}));
    must(session.exec("SET lock_timeout = '1s'"));
    while (!over) {
      const auto begun = std::chrono::steady_clock::now();
      const auto done = session.exec(
          "INSERT INTO outbox_msg (topic, msg_key, body) SELECT $1, (i % 7)::text, to_json(i) FROM "
          "generate_series(1, 10) i",
          pg::Params{}.text(topic));
      const auto took = std::chrono::ceil<Millis>(std::chrono::steady_clock::now() - begun).count();
      if (took > longest_ms) longest_ms = took;
      done ? rows += 10 : refused += 1;
      must(session.exec("SELECT pg_sleep(0.007)"));
    }
  }

  // Now and then a transaction that stays open: whoever wants the table for itself has to wait for it.
  void dawdle(RelayRig& rig, const std::string& topic, int times) {
    auto session = must(pg::Session::connect({.uri = rig.uri()}));
    while (!over && times-- > 0) {
      must(session.exec("BEGIN"));
      must(session.exec("INSERT INTO outbox_msg (topic) VALUES ($1)", pg::Params{}.text(topic)));
      must(session.exec("SELECT pg_sleep(1.5)"));
      must(session.exec("COMMIT"));
    }
  }
};

}  // namespace

TEST_CASE(
    "while thousands of rows a second flow old days are dropped and no insert waits a second for a lock") {
  RelayRig rig{{.pipeline = "    retention: { every: 1s, replay_window: 1h, partitions_ahead: 9 }\n"}};
  const std::string topic = KafkaCluster::shared().new_topic("flow", 3);
  make_old_days(rig);
  Business business;
  std::vector<std::future<void>> people;
  people.reserve(5);
  for (int writer = 0; writer < 4; ++writer)
    people.push_back(std::async(std::launch::async, [&] { business.insert(rig, topic); }));
  people.push_back(std::async(std::launch::async, [&] { business.dawdle(rig, topic, 3); }));
  rig.await("rows flow", [&] { return business.rows > 1000; });
  const auto begun = std::chrono::steady_clock::now();
  const auto before = business.rows.load();
  rig.start();
  const bool dropped = happens_within(Millis{90'000}, [&] {
    return rig.ask("SELECT count(*) FROM pg_inherits WHERE inhparent = 'outbox_msg'::regclass") == "12";
  });
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  const auto flowed = static_cast<double>(business.rows - before) / seconds;
  business.over = true;
  for (auto& person : people) person.get();
  MESSAGE("rows/s " << flowed << ", longest insert " << business.longest_ms.load() << " ms");
  CHECK_MESSAGE(dropped, rig.logs());
  CHECK(business.refused == 0);
  CHECK(flowed > 1000);  // 5,000 on a machine that has nothing else to do
  rig.eventually_none_pending(Millis{60'000});
  CHECK(rig.count("SENT") == rig.ask("SELECT count(*) FROM outbox_msg"));
}
