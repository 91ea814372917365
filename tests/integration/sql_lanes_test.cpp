// outbox_lanes_keep and outbox_lanes_give: what only the real tables and the real clock show; the laws that
// hold for the relay are in tests/contract/source_lease_laws.hpp.

#include <doctest/doctest.h>

#include <future>
#include <latch>

#include "sql_fixture.hpp"

namespace outbox {
namespace {

using test::ask;
using test::must;
using test::OutboxDatabase;
using test::refusal;

// The lanes that `name` has afterwards as "lane:epoch", and its share.
std::string keep(pg::Session& session, const std::string& name, int lanes,
                 const std::string& ttl = "1 minute") {
  return ask(
      session,
      "SELECT coalesce(string_agg(lane || ':' || epoch, ',' ORDER BY lane) FILTER (WHERE owner = $1), '-'), "
      "max(share) FROM outbox_lanes_keep('public.outbox_msg', $1, $2, $3::interval)",
      pg::Params{}.text(name).i32(lanes).untyped(ttl));
}
std::string give(pg::Session& session, const std::string& name, const std::string& lanes,
                 const std::string& epochs) {
  return ask(session,
             "SELECT outbox_lanes_give('public.outbox_msg', $1, $2::smallint[], $3::bigint[], false)",
             pg::Params{}.text(name).untyped(lanes).untyped(epochs));
}
void shift(pg::Session& session, const std::string& by) {
  ask(session,
      "UPDATE outbox_lease SET lease_until = lease_until + $1::interval, renewed_at = renewed_at + "
      "$1::interval WHERE isfinite(lease_until)",
      pg::Params{}.untyped(by));
  ask(session,
      "UPDATE outbox_instance SET alive_until = alive_until + $1::interval, renewed_at = renewed_at + "
      "$1::interval",
      pg::Params{}.untyped(by));
}

}  // namespace

TEST_CASE("an instance without a lane is known all the same, and forgotten when its time is up") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  keep(sql, "a", 1);
  CHECK(keep(sql, "b", 1) == "-|0");
  CHECK(ask(sql, "SELECT instance, lanes FROM outbox_instance ORDER BY since") == "a|1 b|1");
  ask(sql, "UPDATE outbox_instance SET alive_until = now() - interval '1 s' WHERE instance = 'b'");
  keep(sql, "a", 1);
  CHECK(ask(sql, "SELECT instance FROM outbox_instance") == "a");
}

TEST_CASE(
    "when the server's clock is set back a day, a dead owner's lanes are free after its ttl all the same") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  keep(sql, "dead", 2, "300 ms");
  shift(sql, "1 day");  // the same as the clock a day back
  CHECK(keep(sql, "b", 2) == "-|1");
  ask(sql, "SELECT pg_sleep(0.4)");  // the server's clock is what has to move
  CHECK(keep(sql, "b", 2) == "0:2,1:2|2");
}

TEST_CASE("when the server's clock is set back a day, who renews keeps lanes and epochs") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  keep(sql, "a", 2);
  shift(sql, "1 day");
  CHECK(keep(sql, "a", 2) == "0:1,1:1|2");
  CHECK(ask(sql, "SELECT bool_and(lease_until < now() + interval '2 minutes') FROM outbox_lease") == "t");
}

TEST_CASE(
    "a second instance waits for the first one's transaction and then judges by the clock of that moment") {
  OutboxDatabase outbox;
  auto first = outbox.session();
  must(first.exec_script("BEGIN"));
  keep(first, "a", 2, "100 ms");
  std::string answer;
  std::future<void> second = std::async(std::launch::async, [&] {
    auto session = outbox.session();
    answer = keep(session, "b", 2);
  });
  ask(outbox.sql(), "SELECT pg_sleep(0.2)");  // the server's clock is what has to move
  must(first.exec_script("COMMIT"));
  second.get();
  CHECK(answer == "0:2,1:2|2");
}

TEST_CASE("sources don't share their lanes") {
  OutboxDatabase outbox;
  keep(outbox.sql(), "a", 1);
  CHECK(ask(outbox.sql(), "SELECT lane, epoch, owner FROM outbox_lanes_keep('other.table', 'b', 1, '1 s')") ==
        "0|1|b");
}

TEST_CASE("a lane is given back under its epoch only, by its owner only") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  keep(sql, "a", 3);
  CHECK(give(sql, "b", "{0,1}", "{1,1}") == "0");
  CHECK(give(sql, "a", "{0,1}", "{1,2}") == "1");
  CHECK(ask(sql, "SELECT count(*) FROM outbox_lease WHERE owner IS NULL") == "1");
  CHECK(keep(sql, "a", 3) == "0:2,1:1,2:1|3");
}

TEST_CASE("of many instances that ask at once no two have a lane, and together they have all") {
  OutboxDatabase outbox;
  for (int round = 0; round < 10; ++round) {
    ask(outbox.sql(), "UPDATE outbox_lease SET lease_until = now() - interval '1 s'");
    ask(outbox.sql(), "DELETE FROM outbox_instance");
    constexpr int count = 4;
    std::latch start(count);
    std::vector<std::future<void>> instances;
    for (int i = 0; i < count; ++i) {
      instances.push_back(std::async(std::launch::async, [&, i] {
        auto session = outbox.session();
        const std::string name = "round" + std::to_string(round) + "instance" + std::to_string(i);
        start.arrive_and_wait();
        for (int n = 0; n < 4; ++n) {
          keep(session, name, 6);
          ask(session,
              "SELECT outbox_lanes_give('public.outbox_msg', $1, array_agg(lane), array_agg(epoch), false) "
              "FROM "
              "(SELECT lane, epoch FROM outbox_lease WHERE owner = $1 ORDER BY lane OFFSET 1) s HAVING "
              "count(*) > 0",
              pg::Params{}.text(name));
        }
      }));
    }
    for (auto& instance : instances) instance.get();
    for (int i = 0; i < count; ++i)
      keep(outbox.sql(), "round" + std::to_string(round) + "instance" + std::to_string(i), 6);
    CHECK(ask(outbox.sql(),
              "SELECT count(*), count(DISTINCT owner), max(n) FROM (SELECT owner, count(*) OVER (PARTITION "
              "BY owner) n "
              "FROM outbox_lease WHERE owner IS NOT NULL) s") == "6|4|2");
  }
}

TEST_CASE("senseless requests for lanes are refused") {
  OutboxDatabase outbox;
  for (const std::string args : {"'a', 0, '1 s'", "'a', 65, '1 s'", "'', 1, '1 s'", "NULL, 1, '1 s'",
                                 "'a', 1, '0 s'", "'a', NULL, '1 s'", "'a', 1, NULL"}) {
    CAPTURE(args);
    CHECK(refusal(outbox.sql(), "SELECT outbox_lanes_keep('s', " + args + ")") == "22023");
  }
}

}  // namespace outbox
