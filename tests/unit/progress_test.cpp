#include "relay/core/health/progress.hpp"

#include <doctest/doctest.h>

using namespace outbox;
using namespace outbox::relay;

namespace {

constexpr MonoTime start{std::chrono::hours{1}};
MonoTime at(int seconds) {
  return start + std::chrono::seconds{seconds};
}

// Of a relay that has worked for 1,000 s and was answered until then.
Health working() {
  Health health;
  health.started = start;
  health.lease_answered = at(1000);
  health.look_answered = at(1000);
  health.working = true;
  return health;
}

Verdict verdict(const Health& health, int now) {
  return judge(health, at(now), Patience{}).verdict;
}

}  // namespace

TEST_CASE("idle is ready, for as long as leases and looks are answered") {
  Health health = working();
  CHECK(verdict(health, 1005) == Verdict::ready);
  CHECK(judge(health, at(1005), Patience{}).reason.empty());
}

TEST_CASE("a standby is ready, although it looks at no table") {
  Health health = working();
  health.working = false;
  health.lease_answered = at(5000);
  CHECK(verdict(health, 5003) == Verdict::ready);
}

TEST_CASE(
    "a paused pipeline is well, whatever it does not look at, and still stuck or waiting where that is so") {
  Health health = working();
  health.working = false;  // it claims nothing
  health.paused = "operator: migration";
  health.lease_answered = at(5000);
  CHECK(verdict(health, 5003) == Verdict::paused);
  CHECK(judge(health, at(5003), Patience{}).reason == "operator: migration");
  CHECK(is_well(Verdict::paused));
  CHECK(verdict(health, 5020) == Verdict::stuck);  // no lease is answered
  health.lease_answered = at(5019);
  health.owing = at(5000);
  CHECK(verdict(health, 5020) == Verdict::stuck);  // what was claimed before is not settled
  health.owing.reset();
  health.kafka_down = at(5000);
  CHECK(verdict(health, 5020) == Verdict::waiting);
}

TEST_CASE("rows taken on and none settled: stuck after 10 s, within 15, with the reason") {
  Health health = working();
  health.taken_on(at(1000));
  health.lease_answered = health.look_answered = at(1012);
  CHECK(verdict(health, 1009) == Verdict::ready);
  CHECK(verdict(health, 1012) == Verdict::stuck);
  CHECK(judge(health, at(1012), Patience{}).reason == "rows are in flight, and none was settled for 12 s");
}

TEST_CASE("each settled batch renews the patience, more rows taken on do not") {
  Health health = working();
  health.taken_on(at(1000));
  health.lease_answered = health.look_answered = at(1014);
  health.settled(at(1008), 5);
  health.taken_on(at(1013));
  CHECK(verdict(health, 1014) == Verdict::ready);
  health.lease_answered = at(1019);
  CHECK(verdict(health, 1019) == Verdict::stuck);
  health.settled(at(1019), 0);
  health.look_answered = at(1019);
  CHECK(verdict(health, 1020) == Verdict::ready);
}

TEST_CASE("no lease answered is stuck, unless PostgreSQL is known to be away: then it is waited for") {
  Health health = working();
  CHECK(verdict(health, 1011) == Verdict::stuck);
  health.postgres_down = at(1000);
  health.postgres_error = "connection refused";
  CHECK(verdict(health, 1011) == Verdict::waiting);
  CHECK(judge(health, at(1011), Patience{}).reason == "PostgreSQL is away for 11 s: connection refused");
}

TEST_CASE("a short loss of either server is no news") {
  Health health = working();
  health.postgres_down = at(1000);
  health.kafka_down = at(1000);
  CHECK(verdict(health, 1005) == Verdict::ready);
}

TEST_CASE("Kafka away is waited for, also with rows in flight") {
  Health health = working();
  health.taken_on(at(1000));
  health.kafka_down = at(1000);
  health.lease_answered = at(1500);
  CHECK(verdict(health, 1500) == Verdict::waiting);
}

TEST_CASE("looks that are not answered are stuck, by the poll interval's measure") {
  Health health = working();
  health.lease_answered = at(1040);
  CHECK(verdict(health, 1012) == Verdict::stuck);
  CHECK(judge(health, at(1012), {.look_every = Millis{60'000}}).verdict == Verdict::ready);
}

TEST_CASE("leases that are asked for seldom are missed later") {
  Health health = working();
  health.look_answered = at(1015);
  CHECK(verdict(health, 1015) == Verdict::stuck);
  CHECK(judge(health, at(1015), {.lease_every = Millis{20'000}}).verdict == Verdict::ready);
  CHECK(judge(health, at(1031), {.look_every = Millis{60'000}, .lease_every = Millis{20'000}}).verdict ==
        Verdict::stuck);
}

TEST_CASE("draining that does not end is stuck") {
  Health health = working();
  health.working = false;
  health.draining = at(1000);
  health.lease_answered = at(1011);
  CHECK(verdict(health, 1011) == Verdict::stuck);
}

TEST_CASE("a start that was not answered yet is not ready, and an unanswered one is stuck in the end") {
  Health health;
  health.started = start;
  CHECK(verdict(health, 1) == Verdict::waiting);
  CHECK(verdict(health, 11) == Verdict::stuck);
  health.postgres_down = at(0);
  CHECK(verdict(health, 11) == Verdict::waiting);
}

TEST_CASE("stopping is not ready, whatever else is") {
  Health health = working();
  health.stopping = true;
  CHECK(verdict(health, 1001) == Verdict::stopping);
}

TEST_CASE(
    "a lane that cannot send waits, by name and with its reason, however well the others make progress") {
  Health health = working();
  health.stopped = {.lanes = 2, .lane = 3, .since = at(990), .why = "its transaction waits for Kafka"};
  health.owing = at(999);
  CHECK(verdict(health, 1000) == Verdict::ready);
  const Judgement judgement = judge(health, at(1003), Patience{});
  CHECK(judgement.verdict == Verdict::waiting);
  CHECK(judgement.reason ==
        "lane 3 has sent nothing for 13 s (stopped too: 1): its transaction waits for Kafka");
  health.stopped->lanes = 1;
  CHECK(judge(health, at(1003), Patience{}).reason ==
        "lane 3 has sent nothing for 13 s: its transaction waits for Kafka");
}

TEST_CASE("rows owed by a stopped lane are no reason for a restart, and a call that never returns is one") {
  Health health = working();
  health.owing = at(980);
  CHECK(verdict(health, 1000) == Verdict::stuck);
  health.stopped = {.lanes = 1, .lane = 0, .since = at(985)};
  CHECK(verdict(health, 1000) == Verdict::waiting);
  health.stopped->since = at(995);
  CHECK(verdict(health, 1000) == Verdict::ready);
  health.stopped->since = at(985);
  health.stopped->answered = false;
  CHECK(verdict(health, 1000) == Verdict::stuck);
}

TEST_CASE("an instance that delivers otherwise than those at work waits, and says so at once") {
  Health health = working();
  health.differs = "instance a works with delivery: at_least_once";
  CHECK(judge(health, at(1001), Patience{}).verdict == Verdict::waiting);
  CHECK(judge(health, at(1001), Patience{}).reason == health.differs);
}

TEST_CASE("what is told of a stopped lane is bounded and fit to be stored, whatever a broker said") {
  Health::Stopped stopped{.lanes = 1, .lane = 0, .since = at(985), .why = "a\xff" + std::string(5000, 'x')};
  stopped.why[3] = '\0';
  const std::string said = sentence(stopped, at(990));
  CHECK(said.starts_with("lane 0 has sent nothing for 5 s: a?x?x"));
  CHECK(said.size() < 500);
}
