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
Signs working() {
  Signs signs;
  signs.started = start;
  signs.lease_answered = at(1000);
  signs.look_answered = at(1000);
  signs.working = true;
  return signs;
}

Verdict verdict(const Signs& signs, int now) {
  return judge(signs, at(now), Patience{}).verdict;
}

}  // namespace

TEST_CASE("idle is ready, for as long as leases and looks are answered") {
  Signs signs = working();
  CHECK(verdict(signs, 1005) == Verdict::ready);
  CHECK(judge(signs, at(1005), Patience{}).reason.empty());
}

TEST_CASE("a standby is ready, although it looks at no table") {
  Signs signs = working();
  signs.working = false;
  signs.lease_answered = at(5000);
  CHECK(verdict(signs, 5003) == Verdict::ready);
}

TEST_CASE(
    "a paused pipeline is well, whatever it does not look at, and still stuck or waiting where that is so") {
  Signs signs = working();
  signs.working = false;  // it claims nothing
  signs.paused = "operator: migration";
  signs.lease_answered = at(5000);
  CHECK(verdict(signs, 5003) == Verdict::paused);
  CHECK(judge(signs, at(5003), Patience{}).reason == "operator: migration");
  CHECK(is_well(Verdict::paused));
  CHECK(verdict(signs, 5020) == Verdict::stuck);  // no lease is answered
  signs.lease_answered = at(5019);
  signs.owing = at(5000);
  CHECK(verdict(signs, 5020) == Verdict::stuck);  // what was claimed before is not settled
  signs.owing.reset();
  signs.kafka_down = at(5000);
  CHECK(verdict(signs, 5020) == Verdict::waiting);
}

TEST_CASE("rows taken on and none settled: stuck after 10 s, within 15, with the reason") {
  Signs signs = working();
  signs.taken_on(at(1000));
  signs.lease_answered = signs.look_answered = at(1012);
  CHECK(verdict(signs, 1009) == Verdict::ready);
  CHECK(verdict(signs, 1012) == Verdict::stuck);
  CHECK(judge(signs, at(1012), Patience{}).reason == "rows are in flight, and none was settled for 12 s");
}

TEST_CASE("each settled batch renews the patience, more rows taken on do not") {
  Signs signs = working();
  signs.taken_on(at(1000));
  signs.lease_answered = signs.look_answered = at(1014);
  signs.settled(at(1008), 5);
  signs.taken_on(at(1013));
  CHECK(verdict(signs, 1014) == Verdict::ready);
  signs.lease_answered = at(1019);
  CHECK(verdict(signs, 1019) == Verdict::stuck);
  signs.settled(at(1019), 0);
  signs.look_answered = at(1019);
  CHECK(verdict(signs, 1020) == Verdict::ready);
}

TEST_CASE("no lease answered is stuck, unless PostgreSQL is known to be away: then it is waited for") {
  Signs signs = working();
  CHECK(verdict(signs, 1011) == Verdict::stuck);
  signs.postgres_down = at(1000);
  signs.postgres_error = "connection refused";
  CHECK(verdict(signs, 1011) == Verdict::waiting);
  CHECK(judge(signs, at(1011), Patience{}).reason == "PostgreSQL is away for 11 s: connection refused");
}

TEST_CASE("a short loss of either server is no news") {
  Signs signs = working();
  signs.postgres_down = at(1000);
  signs.kafka_down = at(1000);
  CHECK(verdict(signs, 1005) == Verdict::ready);
}

TEST_CASE("Kafka away is waited for, also with rows in flight") {
  Signs signs = working();
  signs.taken_on(at(1000));
  signs.kafka_down = at(1000);
  signs.lease_answered = at(1500);
  CHECK(verdict(signs, 1500) == Verdict::waiting);
}

TEST_CASE("looks that are not answered are stuck, by the poll interval's measure") {
  Signs signs = working();
  signs.lease_answered = at(1040);
  CHECK(verdict(signs, 1012) == Verdict::stuck);
  CHECK(judge(signs, at(1012), {.look_every = Millis{60'000}}).verdict == Verdict::ready);
}

TEST_CASE("leases that are asked for seldom are missed later") {
  Signs signs = working();
  signs.look_answered = at(1015);
  CHECK(verdict(signs, 1015) == Verdict::stuck);
  CHECK(judge(signs, at(1015), {.lease_every = Millis{20'000}}).verdict == Verdict::ready);
  CHECK(judge(signs, at(1031), {.look_every = Millis{60'000}, .lease_every = Millis{20'000}}).verdict ==
        Verdict::stuck);
}

TEST_CASE("draining that does not end is stuck") {
  Signs signs = working();
  signs.working = false;
  signs.draining = at(1000);
  signs.lease_answered = at(1011);
  CHECK(verdict(signs, 1011) == Verdict::stuck);
}

TEST_CASE("a start that was not answered yet is not ready, and an unanswered one is stuck in the end") {
  Signs signs;
  signs.started = start;
  CHECK(verdict(signs, 1) == Verdict::waiting);
  CHECK(verdict(signs, 11) == Verdict::stuck);
  signs.postgres_down = at(0);
  CHECK(verdict(signs, 11) == Verdict::waiting);
}

TEST_CASE("stopping is not ready, whatever else is") {
  Signs signs = working();
  signs.stopping = true;
  CHECK(verdict(signs, 1001) == Verdict::stopping);
}

TEST_CASE("a lane that cannot send waits, by name and with its reason, however well the others get on") {
  Signs signs = working();
  signs.stopped = {.lanes = 2, .lane = 3, .since = at(990), .why = "its transaction waits for Kafka"};
  signs.owing = at(999);
  CHECK(verdict(signs, 1000) == Verdict::ready);
  const Judgement judgement = judge(signs, at(1003), Patience{});
  CHECK(judgement.verdict == Verdict::waiting);
  CHECK(judgement.reason ==
        "lane 3 has sent nothing for 13 s (stopped too: 1): its transaction waits for Kafka");
  signs.stopped->lanes = 1;
  CHECK(judge(signs, at(1003), Patience{}).reason ==
        "lane 3 has sent nothing for 13 s: its transaction waits for Kafka");
}

TEST_CASE("rows owed by a stopped lane are no reason for a restart, and a call that never returns is one") {
  Signs signs = working();
  signs.owing = at(980);
  CHECK(verdict(signs, 1000) == Verdict::stuck);
  signs.stopped = {.lanes = 1, .lane = 0, .since = at(985)};
  CHECK(verdict(signs, 1000) == Verdict::waiting);
  signs.stopped->since = at(995);
  CHECK(verdict(signs, 1000) == Verdict::ready);
  signs.stopped->since = at(985);
  signs.stopped->answered = false;
  CHECK(verdict(signs, 1000) == Verdict::stuck);
}

TEST_CASE("an instance that delivers otherwise than those at work waits, and says so at once") {
  Signs signs = working();
  signs.differs = "instance a works with delivery: at_least_once";
  CHECK(judge(signs, at(1001), Patience{}).verdict == Verdict::waiting);
  CHECK(judge(signs, at(1001), Patience{}).reason == signs.differs);
}

TEST_CASE("what is told of a stopped lane is bounded and fit to be stored, whatever a broker said") {
  Signs::Stopped stopped{.lanes = 1, .lane = 0, .since = at(985), .why = "a\xff" + std::string(5000, 'x')};
  stopped.why[3] = '\0';
  const std::string said = sentence(stopped, at(990));
  CHECK(said.starts_with("lane 0 has sent nothing for 5 s: a?x?x"));
  CHECK(said.size() < 500);
}
