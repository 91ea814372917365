// outbox_lease_take: one owner at a time, and epochs that only rise.

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

// "lane|epoch|owner" a lane.
std::string take(pg::Session& session, const std::string& owner, int lanes,
                 const std::string& ttl = "1 minute") {
  return ask(session,
             "SELECT lane, epoch, owner FROM outbox_lease_take('public.outbox_msg', $1, $2, $3::interval)",
             pg::Params{}.text(owner).i32(lanes).untyped(ttl));
}
void expire(pg::Session& session) {
  ask(session, "UPDATE outbox_lease SET lease_until = now() - interval '1 second'");
}

}  // namespace

TEST_CASE("the first to ask has every lane, and renews them under the same epochs") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  CHECK(take(sql, "a", 3) == "0|1|a 1|1|a 2|1|a");
  CHECK(take(sql, "a", 3) == "0|1|a 1|1|a 2|1|a");
  CHECK(ask(sql,
            "SELECT bool_and(remaining_ms BETWEEN 59000 AND 60000) FROM "
            "outbox_lease_take('public.outbox_msg', 'a', 3, '1 minute', 12.5)") == "t");
  CHECK(ask(sql, "SELECT DISTINCT lanes, generation, sent_per_s FROM outbox_lease") == "3|1|12.5");
}

TEST_CASE("while the owner's lease runs, others are told who has it, whatever count they ask for") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  take(sql, "a", 2);
  CHECK(take(sql, "b", 2) == "0|1|a 1|1|a");
  CHECK(take(sql, "b", 5) == "0|1|a 1|1|a");
  CHECK(ask(sql,
            "SELECT bool_and(remaining_ms > 50000) FROM outbox_lease_take('public.outbox_msg', 'b', 2, '1 "
            "s')") == "t");
  CHECK(take(sql, "a", 2) == "0|1|a 1|1|a");
}

TEST_CASE("a take-over raises every epoch, after expiry as after a hand-over") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  take(sql, "a", 2);
  expire(sql);
  CHECK(take(sql, "b", 2) == "0|2|b 1|2|b");
  CHECK(take(sql, "a", 2) == "0|2|b 1|2|b");
  ask(sql, "UPDATE outbox_lease SET owner = NULL, lease_until = now()");
  CHECK(take(sql, "a", 2) == "0|3|a 1|3|a");
}

TEST_CASE("an owner that comes late, with nobody in between, keeps its epochs") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  take(sql, "a", 2);
  expire(sql);
  CHECK(take(sql, "a", 2) == "0|1|a 1|1|a");
  expire(sql);
  take(sql, "b", 2);
  expire(sql);
  CHECK(take(sql, "a", 2) == "0|3|a 1|3|a");
}

TEST_CASE("another count of lanes is a new generation whose epochs lie above every earlier one") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  take(sql, "a", 2);
  expire(sql);
  CHECK(take(sql, "b", 2) == "0|2|b 1|2|b");
  CHECK(take(sql, "b", 4) == "0|3|b 1|3|b 2|3|b 3|3|b");
  CHECK(take(sql, "b", 1) == "0|4|b");
  CHECK(ask(sql, "SELECT lane, lanes, generation FROM outbox_lease") == "0|1|3");
  expire(sql);
  CHECK(take(sql, "c", 2) == "0|5|c 1|5|c");
  CHECK(ask(sql, "SELECT DISTINCT lanes, generation FROM outbox_lease") == "2|4");
}

TEST_CASE("of many owners that ask at once exactly one wins, and two never hold a lane together") {
  OutboxDatabase outbox;
  for (int round = 0; round < 20; ++round) {
    expire(outbox.sql());
    std::latch start(4);
    std::array<std::string, 4> answers;
    std::vector<std::future<void>> owners;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      owners.push_back(std::async(std::launch::async, [&, i] {
        auto session = outbox.session();
        start.arrive_and_wait();
        answers[i] =
            take(session, "round" + std::to_string(round) + "owner" + std::to_string(i), 1 + round % 3);
      }));
    }
    for (auto& owner : owners) owner.get();
    for (const auto& answer : answers) CHECK(answer == answers[0]);
    CHECK(ask(outbox.sql(), "SELECT count(DISTINCT owner), min(epoch) FROM outbox_lease") ==
          "1|" + std::to_string(round + 1));
  }
}

TEST_CASE(
    "a second owner waits for the first one's transaction and then judges by the clock of that moment") {
  OutboxDatabase outbox;
  auto first = outbox.session();
  must(first.exec_script("BEGIN"));
  take(first, "a", 2, "100 ms");
  std::string answer;
  std::future<void> second = std::async(std::launch::async, [&] {
    auto session = outbox.session();
    answer = take(session, "b", 2);
  });
  ask(outbox.sql(), "SELECT pg_sleep(0.2)");  // the server's clock is what has to move
  must(first.exec_script("COMMIT"));
  second.get();
  CHECK(answer == "0|2|b 1|2|b");
}

TEST_CASE("sources don't share their leases") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  take(sql, "a", 1);
  CHECK(ask(sql, "SELECT lane, epoch, owner FROM outbox_lease_take('other.table', 'b', 1, '1 s')") ==
        "0|1|b");
}

TEST_CASE("senseless requests are refused") {
  OutboxDatabase outbox;
  for (const std::string args : {"'a', 0, '1 s'", "'a', 65, '1 s'", "'', 1, '1 s'", "NULL, 1, '1 s'",
                                 "'a', 1, '0 s'", "'a', 1, '-1 s'", "'a', NULL, '1 s'", "'a', 1, NULL"}) {
    CAPTURE(args);
    CHECK(refusal(outbox.sql(), "SELECT outbox_lease_take('s', " + args + ")") == "22023");
  }
}

}  // namespace outbox
