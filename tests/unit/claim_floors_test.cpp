#include "relay/core/claim_floors.hpp"

#include <doctest/doctest.h>

using namespace outbox;
using namespace outbox::relay;
using namespace std::chrono_literals;

namespace {

constexpr Shard here{3};

// One shard, looked at once a second; what the database would say is set by hand.
struct Watch {
  Watch() { leases[0] = Lease{LaneId{0}, Epoch{1}}; }

  std::vector<RowId> send() { return floors.of(shards, leases, now); }
  void back(const std::vector<RowId>& under, const std::vector<std::int64_t>& ids, bool cut = false) {
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
    floors.claimed(shards, under, batch, now);
  }
  // A look, and the floor under which the next one begins.
  std::int64_t look(const std::vector<std::int64_t>& ids = {}, bool cut = false) {
    back(send(), ids, cut);
    now += 1s;
    const auto next = send();
    return next[3].value;
  }
  std::int64_t looks(int times) {
    std::int64_t floor = 0;
    while (times-- > 0) floor = look();
    return floor;
  }

  ClaimFloors floors;
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
  w.floors.again(here, RowId{7});
  CHECK(w.send()[3] == RowId{6});
  const auto under = w.send();
  w.floors.again(here, RowId{4});
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

TEST_CASE("each shard is swept from time to time, a few of them by one claim") {
  Watch w;
  w.shards.clear();
  for (std::int16_t s = 0; s < shard_count; ++s) w.shards.emplace_back(s);
  w.look({9});
  w.looks(4);
  CHECK_FALSE(w.floors.sweep_due(w.now));
  w.now += ClaimFloors::sweep_every;
  std::array<bool, shard_count> swept{};
  for (int claim = 0; claim < 16; ++claim) {
    CHECK(w.floors.sweep_due(w.now));
    const auto under = w.send();
    int without = 0;
    for (std::size_t s = 0; s < under.size(); ++s) {
      if (under[s] != RowId{0}) continue;
      CHECK_FALSE(swept[s]);
      swept[s] = true;
      ++without;
    }
    CHECK(without == 4);
    w.back(under, {});
  }
  CHECK_FALSE(w.floors.sweep_due(w.now));
}
