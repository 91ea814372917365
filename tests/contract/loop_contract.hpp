#pragma once
// What every Loop keeps to, as test cases over a fixture: OUTBOX_LOOP_CONTRACT(MyFixture).
//
// A fixture offers
//   Loop& loop();
//   bool until(std::function<bool()>);   runs the loop until it holds; false: nothing more would happen, or
//   it took too long void pass(Millis);                   lets that much time pass, with whatever comes due
//   in it

#include <doctest/doctest.h>

#include <vector>

#include "relay/ports/loop.hpp"

namespace outbox::test {

TEST_CASE_TEMPLATE_DEFINE(
    "a posted turn runs later, never from inside the call, and turns run in the order of posting", Fixture,
    loop_contract_post) {
  Fixture fixture;
  std::vector<int> ran;
  for (int n = 0; n < 3; ++n) {
    fixture.loop().post([&ran, n] { ran.push_back(n); });
    CHECK(ran.empty());
  }
  REQUIRE(fixture.until([&] { return ran.size() == 3; }));
  CHECK(ran == std::vector{0, 1, 2});
}

TEST_CASE_TEMPLATE_DEFINE("a turn posted by a turn runs after those that were posted before", Fixture,
                          loop_contract_nested) {
  Fixture fixture;
  std::vector<int> ran;
  fixture.loop().post([&] {
    fixture.loop().post([&] { ran.push_back(3); });
    ran.push_back(1);
  });
  fixture.loop().post([&] { ran.push_back(2); });
  REQUIRE(fixture.until([&] { return ran.size() == 3; }));
  CHECK(ran == std::vector{1, 2, 3});
}

TEST_CASE_TEMPLATE_DEFINE("a timer runs once, not before its time, and earlier ones first", Fixture,
                          loop_contract_timers) {
  Fixture fixture;
  relay::Loop& loop = fixture.loop();
  const MonoTime start = loop.now();
  std::vector<int> ran;
  std::vector<MonoTime> at;
  for (const int ms : {30, 10, 20}) {
    loop.at(start + Millis{ms}, [&, ms] {
      ran.push_back(ms);
      at.push_back(loop.now());
    });
  }
  REQUIRE(fixture.until([&] { return ran.size() == 3; }));
  fixture.pass(Millis{50});
  CHECK(ran == std::vector{10, 20, 30});
  for (std::size_t i = 0; i < ran.size(); ++i) CHECK(at[i] >= start + Millis{ran[i]});
}

TEST_CASE_TEMPLATE_DEFINE("a timer for a moment that has passed runs soon, and not from inside the call",
                          Fixture, loop_contract_past) {
  Fixture fixture;
  bool ran = false;
  fixture.loop().at(fixture.loop().now() - Millis{1000}, [&] { ran = true; });
  CHECK_FALSE(ran);
  CHECK(fixture.until([&] { return ran; }));
}

TEST_CASE_TEMPLATE_DEFINE("a cancelled timer never runs, and a spent or unknown id is ignored", Fixture,
                          loop_contract_cancel) {
  Fixture fixture;
  relay::Loop& loop = fixture.loop();
  int ran = 0;
  const auto cancelled = loop.at(loop.now() + Millis{5}, [&] { ran += 100; });
  const auto spent = loop.at(loop.now() + Millis{5}, [&] { ran += 1; });
  loop.cancel(cancelled);
  loop.cancel(cancelled);
  REQUIRE(fixture.until([&] { return ran > 0; }));
  loop.cancel(spent);
  loop.cancel(spent + 1000);
  const auto late = loop.at(loop.now() + Millis{5}, [&] { ran += 10; });
  CHECK(late != spent);
  fixture.pass(Millis{50});
  CHECK(ran == 11);
}

TEST_CASE_TEMPLATE_DEFINE("a turn may cancel another timer that is due in the same moment", Fixture,
                          loop_contract_same_moment) {
  Fixture fixture;
  relay::Loop& loop = fixture.loop();
  const MonoTime when = loop.now() + Millis{5};
  int ran = 0;
  relay::Loop::TimerId second = 0;
  loop.at(when, [&] {
    ran += 1;
    loop.cancel(second);
  });
  second = loop.at(when, [&] { ran += 10; });
  fixture.pass(Millis{50});
  CHECK(ran == 1);
}

TEST_CASE_TEMPLATE_DEFINE("time never runs backwards", Fixture, loop_contract_monotonic) {
  Fixture fixture;
  MonoTime last = fixture.loop().now();
  for (int n = 0; n < 20; ++n) {
    fixture.pass(Millis{1});
    const MonoTime now = fixture.loop().now();
    CHECK(now >= last + Millis{1});
    last = now;
  }
}

}  // namespace outbox::test

#define OUTBOX_LOOP_CONTRACT(Fixture)                            \
  TEST_CASE_TEMPLATE_INVOKE(loop_contract_post, Fixture);        \
  TEST_CASE_TEMPLATE_INVOKE(loop_contract_nested, Fixture);      \
  TEST_CASE_TEMPLATE_INVOKE(loop_contract_timers, Fixture);      \
  TEST_CASE_TEMPLATE_INVOKE(loop_contract_past, Fixture);        \
  TEST_CASE_TEMPLATE_INVOKE(loop_contract_cancel, Fixture);      \
  TEST_CASE_TEMPLATE_INVOKE(loop_contract_same_moment, Fixture); \
  TEST_CASE_TEMPLATE_INVOKE(loop_contract_monotonic, Fixture)
