#include "relay/core/claim/claim_floors.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <span>

using namespace outbox;
using namespace outbox::relay;
using namespace std::chrono_literals;

namespace {

constexpr Shard here{3};

constexpr auto slow = 5ms;

// One shard, looked at once a second; what the database would say is set by hand. Floors are in use, since a
// look was slow.
struct Watch {
  Watch() {
    leases[0] = Lease{LaneId{0}, Epoch{1}};
    back(send(), {}, false, slow);
    floors.reset();
  }

  std::vector<RowId> send() { return floors.floors_for(shards, leases, now); }
  void back(const std::vector<RowId>& under, const std::vector<std::int64_t>& ids, bool cut = false,
            Micros took = 1ms) {
    Batch batch;
    batch.horizon = horizon;
    for (const auto id : ids) {
      Message m;
      m.id = RowId{id};
      m.shard = here;
      batch.rows.push_back(m);
    }
    batch.more = cut;
    if (cut) batch.cut = {here};
    floors.claimed({shards, under, Look::flat, now - took}, batch, now);
  }
  // A look, and the floor under which the next one begins.
  std::int64_t look(const std::vector<std::int64_t>& ids = {}, bool cut = false) {
    back(send(), ids, cut);
    now += 1s + 1ms;
    const auto next = send();
    return next[3].value;
  }
  std::int64_t looks(int times) {
    std::int64_t floor = 0;
    while (times-- > 0) floor = look();
    return floor;
  }

  ClaimFloors floors{slow};
  std::vector<Shard> shards{here};
  std::vector<std::optional<Lease>> leases{1};
  ClaimHorizon horizon{.oldest_running = 100, .next_transaction = 100, .releases = 0};
  MonoTime now{1h};
};

}  // namespace

TEST_CASE("a floor rises to what was reached once all that ran then has ended, and one more look saw it") {
  Watch w;
  CHECK(w.look({5, 9}) == 0);
  CHECK(w.look() == 0);
  CHECK(w.looks(2) == 0);
  CHECK(w.look() == 9);
}

TEST_CASE("where a transaction has its number before its ids the floor does not wait two seconds more") {
  Watch w;
  const auto looks_until_raised = [&] {
    w.floors.reset();
    int looks = 1;
    for (std::int64_t floor = w.look({9}); floor != 9 && looks < 20; ++looks) floor = w.look();
    return looks;
  };
  const int waiting = looks_until_raised();  // a look a second: the one after a second is too early
  w.horizon.transaction_first = true;
  CHECK(looks_until_raised() == waiting - 1);
}

TEST_CASE("while a transaction that may have a smaller id is open the floor does not pass") {
  Watch w;
  w.look({9});
  w.horizon = {.oldest_running = 100, .next_transaction = 101, .releases = 0};  // number 100 runs
  CHECK(w.looks(6) == 0);
  w.horizon = {.oldest_running = 101, .next_transaction = 101, .releases = 0};
  const auto under = w.send();
  w.back(under, {});
  w.now += 1s;
  // Ended is not seen: the look that begins now sees what it wrote.
  CHECK(w.send()[3] == RowId{0});
  CHECK(w.look({4}) == 9);
}

TEST_CASE("what a claim says of transactions is of when it was sent, however late it answers") {
  Watch w;
  w.look({9});
  const auto under = w.send();
  w.now += 3s;
  w.back(under, {}, false, 3s);
  w.horizon = {.oldest_running = 100, .next_transaction = 101, .releases = 0};  // number 100 began meanwhile
  CHECK(w.looks(6) == 0);
}

TEST_CASE("a look that was cut short reaches only what it brought") {
  Watch w;
  w.look({5, 9});
  w.looks(2);
  w.look();
  CHECK(w.look({2, 3}, true) == 3);
}

TEST_CASE("a row that is unsent again takes the floor below itself, also while a claim is under way") {
  Watch w;
  w.look({5, 9});
  CHECK(w.looks(4) == 9);
  w.floors.lower_to(here, RowId{7});
  CHECK(w.send()[3] == RowId{6});
  const auto under = w.send();
  w.floors.lower_to(here, RowId{4});
  w.back(under, {20});
  CHECK(w.look() <= 3);
  for (int i = 0; i < 4; ++i) CHECK(w.look({4, 20}, false) <= 20);
}

TEST_CASE(
    "when rows were let go no floor of before holds, of any shard, nor one that a claim under way learns") {
  Watch w;
  w.look({9});
  CHECK(w.looks(4) == 9);
  const auto under = w.send();
  w.horizon.releases = 1;
  w.back(under, {});
  CHECK(w.floors.releases() == 1);
  CHECK(w.send()[3] == RowId{0});
  w.horizon.releases = 0;  // a claim that was slow on its way back
  w.back(under, {});
  CHECK(w.floors.releases() == 1);
  CHECK(w.send()[3] == RowId{0});
}

TEST_CASE("another owner, a lost connection: no floor") {
  Watch w;
  w.look({9});
  CHECK(w.looks(4) == 9);
  w.leases[0]->epoch = Epoch{2};
  CHECK(w.send()[3] == RowId{0});
  w.look({9});
  CHECK(w.looks(4) == 9);
  w.floors.reset();
  CHECK(w.send()[3] == RowId{0});
}

namespace {

// All shards, each with a floor at 9.
struct WideWatch : Watch {
  WideWatch() {
    shards.clear();
    for (std::int16_t s = 0; s < shard_count; ++s) shards.emplace_back(s);
    look({9});
    looks(4);
    back(send(), {});  // what a claim takes that sweeps nothing
  }
  // One more claim, which takes a millisecond and `cost` for each shard that it sweeps; how many those were.
  std::int64_t claim(Micros cost = 0us) {
    const auto under = send();
    const auto swept = std::ranges::count(under, RowId{0});
    if (under.empty()) return 0;
    now += 1ms + swept * cost;
    back(under, {}, false, 1ms + swept * cost);
    return swept;
  }
};

}  // namespace

TEST_CASE(
    "each shard is swept every ten seconds where that costs little, one by one while claims are frequent") {
  WideWatch w;
  std::array<MonoTime, shard_count> swept{};
  swept.fill(w.now - 1s);
  std::int64_t most = 0;
  for (const MonoTime end = w.now + 40s; w.now < end; w.now += 9ms) {
    const auto under = w.send();
    REQUIRE(w.floors.in_use());
    for (std::size_t s = 0; s < under.size(); ++s) {
      if (under[s] != RowId{0}) continue;
      CHECK(w.now - swept[s] >= 10s);
      CHECK(w.now - swept[s] <= 22s);  // the first time they all come due at once
      swept[s] = w.now;
    }
    most = std::max<std::int64_t>(most, std::ranges::count(under, RowId{0}));
    w.now += 1ms;
    w.back(under, {});
  }
  for (const MonoTime at : swept) CHECK(w.now - at <= 22s);
  CHECK(most <= 4);  // the first time; the slow look took 5 ms for a shard
}

TEST_CASE("a claim after a pause makes up for the sweeps that were not made meanwhile, as far as it bears") {
  WideWatch w;
  w.now += 40s;
  CHECK(w.claim(1ms) == 4);  // the look that was slow took 5 ms for a shard
  w.now += 20s;
  CHECK(w.claim(1ms) == 20);
  w.now += 20s;
  CHECK(w.claim(4ms) == 20);  // that they cost more is known only then
  w.now += 60s;
  CHECK(w.claim(4ms) == 5);
}

TEST_CASE("sweeps take two percent of the time, whatever one costs") {
  WideWatch w;
  w.now += 20s;
  const MonoTime begin = w.now;
  Micros sweeping{};
  while (w.now < begin + 120s) {
    sweeping += w.claim(40ms) * 40ms;
    w.now += 9ms;
    if (w.now < begin + 10s) sweeping = {};  // what they cost is known by then
  }
  CHECK(sweeping <= 110'000ms / 50 + 40ms);
  CHECK(sweeping >= 110'000ms / 80);
  CHECK(w.floors.in_use());
}

TEST_CASE(
    "where sweeps cost so much that they do not come round in ten seconds each shard has its turn all the "
    "same") {
  WideWatch w;
  std::array<int, shard_count> swept{};
  for (const MonoTime end = w.now + 200s; w.now < end; w.now += 9ms) {
    const auto under = w.send();
    REQUIRE(w.floors.in_use());
    for (std::size_t s = 0; s < under.size(); ++s) swept[s] += under[s] == RowId{0} ? 1 : 0;
    const Micros took = 1ms + std::ranges::count(under, RowId{0}) * 20ms;  // one sweep a second
    w.now += took;
    w.back(under, {}, false, took);
  }
  CHECK(std::ranges::min(swept) >= 2);
  CHECK(std::ranges::max(swept) <= 5);
}

TEST_CASE("floors are used once a look without them was slow, until the sweeps show that none would be") {
  WideWatch w;
  for (const MonoTime end = w.now + 180s; w.now < end; w.now += 9ms) w.claim(1ms);
  CHECK(w.floors.in_use());  // all shards together: 64 ms
  for (const MonoTime end = w.now + 130s; w.now < end && w.floors.in_use(); w.now += 9ms) w.claim(0us);
  CHECK_FALSE(w.floors.in_use());
  CHECK(w.send().empty());
  w.back({}, {}, false, slow - 1us);
  CHECK(w.send().empty());
  w.back({}, {}, false, slow);
  CHECK(w.send()[3] == RowId{9});
}

TEST_CASE("a lane's claim, which brings more, is slow only after twenty times as long") {
  WideWatch w;
  ClaimFloors floors{slow};
  const Batch nothing{};
  (void)floors.floors_for(w.shards, w.leases, w.now);
  floors.claimed({w.shards, {}, Look::by_shard, w.now - 99ms}, nothing, w.now);
  CHECK_FALSE(floors.in_use());
  floors.claimed({w.shards, {}, Look::by_shard, w.now - 100ms}, nothing, w.now);
  CHECK(floors.in_use());
}

TEST_CASE("claims of several lanes that are under way at once sweep no more than one would") {
  WideWatch w;
  w.now += 40s;
  const std::span<const Shard> shards(w.shards);
  const auto swept = [&](std::span<const Shard> some) {
    const auto under = w.floors.floors_for(some, w.leases, w.now);
    return std::ranges::count_if(
        some, [&](Shard s) { return under[static_cast<std::size_t>(s.value)] == RowId{0}; });
  };
  CHECK(swept(shards.first(32)) == 4);
  CHECK(swept(shards.last(32)) == 0);
}
