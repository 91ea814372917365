#pragma once
// The laws of Source::mark. Part of source_contract.hpp.

#include "tests/contract/source_contract.hpp"

namespace outbox::test {

inline std::optional<relay::MarkOutcome> outcome_of(const relay::MarkReply& reply, std::int64_t id) {
  for (const relay::MarkException& e : reply.exceptions) {
    if (e.id.value == id) return e.outcome;
  }
  return std::nullopt;
}

TEST_CASE_TEMPLATE_DEFINE("a marked row is SENT with its partition and offset, and never claimed again",
                          World, source_mark) {
  World world;
  const auto leases = lease(world, "me");
  for (int n = 0; n < 30; ++n) world.insert({.key = "account-" + std::to_string(n)});
  const std::int64_t due = world.insert({.due_in = Millis{-1000}});
  const auto batch = claim(world);
  auto rows = sent(batch.rows, leases);
  const auto due_rows = sent(batch.due, leases, 7);
  rows.insert(rows.end(), due_rows.begin(), due_rows.end());
  CHECK(mark(world, rows).exceptions.empty());
  for (const relay::SentRow& row : rows) {
    const auto state = world.row(row.id.value);
    REQUIRE(state);
    CHECK(state->status == "SENT");
    CHECK(state->partition == 3);
    CHECK(state->offset == row.offset.value);
  }
  CHECK(world.row(due)->offset == 7);
  const auto after = claim(world);
  CHECK(after.rows.empty());
  CHECK(after.due.empty());
  CHECK(mark(world, {}).exceptions.empty());
}

TEST_CASE_TEMPLATE_DEFINE("a mark can be repeated: rows of an earlier try count as marked", World,
                          source_mark_again) {
  World world;
  const auto leases = lease(world, "me");
  for (int n = 0; n < 5; ++n) world.insert({});
  const auto first = claim(world).rows;
  mark(world, sent(first, leases));
  const std::int64_t late = world.insert({});
  auto rows = sent(first, leases);
  const auto more = sent(claim(world).rows, leases, 500);
  rows.insert(rows.end(), more.begin(), more.end());
  CHECK(mark(world, rows).exceptions.empty());
  CHECK(status(world, late) == "SENT");
  CHECK(world.row(first[0].id.value)->offset == 100);
}

TEST_CASE_TEMPLATE_DEFINE("a row that moved since the claim is marked where it lies now", World,
                          source_mark_moved) {
  World world;
  const auto leases = lease(world, "me");
  const std::int64_t id = world.insert({});
  const auto rows = claim(world).rows;
  hold(world, key_hold);
  set_held(world, {id});
  release(world, key_hold);
  CHECK(mark(world, sent(rows, leases)).exceptions.empty());
  CHECK(status(world, id) == "SENT");
}

TEST_CASE_TEMPLATE_DEFINE("an address is a hint: another row that lies there is not marked for it", World,
                          source_mark_address) {
  World world;
  const auto leases = lease(world, "me");
  const std::int64_t first = world.insert({});
  const std::int64_t second = world.insert({});
  auto rows = sent(claim(world).rows, leases);
  rows[0].address = rows[1].address;
  rows.pop_back();
  CHECK(mark(world, rows).exceptions.empty());
  CHECK(status(world, first) == "SENT");
  CHECK(status(world, second) == "PENDING");
}

TEST_CASE_TEMPLATE_DEFINE("a row that was set HELD while it was on its way is marked", World,
                          source_mark_held) {
  World world;
  const auto leases = lease(world, "me");
  const std::int64_t id = world.insert({});
  const auto rows = claim(world).rows;
  hold(world, key_hold);
  set_held(world, {id});
  CHECK(mark(world, sent(rows, leases)).exceptions.empty());
  CHECK(status(world, id) == "SENT");
}

TEST_CASE_TEMPLATE_DEFINE("a row cancelled while it was on its way is recorded as sent, and told", World,
                          source_cancelled) {
  World world;
  const auto leases = lease(world, "me");
  const std::int64_t id = world.insert({.due_in = Millis{-1000}});
  const auto rows = claim(world).due;
  world.cancel(id);
  const auto reply = mark(world, sent(rows, leases));
  CHECK(outcome_of(reply, id) == relay::MarkOutcome::cancelled);
  CHECK(reply.exceptions.size() == 1);
  CHECK(status(world, id) == "SENT");
  CHECK(world.row(id)->offset == 100);
  CHECK(mark(world, sent(rows, leases)).exceptions.empty());
}

TEST_CASE_TEMPLATE_DEFINE("a lane that another owner has taken is told, and its rows are not marked", World,
                          source_lane_lost) {
  World world;
  const auto mine = lease(world, "me");
  const std::int64_t id = world.insert({});
  const auto rows = claim(world).rows;
  asked<void>(world,
              [&](auto done) { world.source().give_back("me", {}, relay::Leaving::yes, std::move(done)); });
  const auto others = lease(world, "other");
  for (const auto after : {relay::AfterSent::mark, relay::AfterSent::erase}) {
    CHECK(outcome_of(mark(world, sent(rows, mine), after), id) == relay::MarkOutcome::lane_lost);
    CHECK(status(world, id) == "PENDING");
  }
  CHECK(mark(world, sent(rows, others)).exceptions.empty());
  CHECK(status(world, id) == "SENT");
}

TEST_CASE_TEMPLATE_DEFINE("a row that was deleted or replayed meanwhile is told as gone", World,
                          source_gone) {
  World world;
  const auto leases = lease(world, "me");
  const std::int64_t removed = world.insert({});
  const std::int64_t replayed = world.insert({});
  const auto rows = claim(world).rows;
  world.remove(removed);
  world.replay(replayed);
  const auto reply = mark(world, sent(rows, leases));
  CHECK(outcome_of(reply, removed) == relay::MarkOutcome::gone);
  CHECK(outcome_of(reply, replayed) == relay::MarkOutcome::gone);
  CHECK(status(world, replayed) == "PENDING");
  CHECK(claim(world).rows.front().generation == 1);
  auto later = sent(claim(world).rows, leases);  // at the right address, and yet of another sending
  later.front().generation = 0;
  CHECK(outcome_of(mark(world, later), replayed) == relay::MarkOutcome::gone);
  CHECK(outcome_of(mark(world, later, relay::AfterSent::erase), replayed) != relay::MarkOutcome::lane_lost);
  CHECK(status(world, replayed) == "PENDING");
}

TEST_CASE_TEMPLATE_DEFINE("each row of a mark is explained for itself, and the others are marked", World,
                          source_mixed) {
  World world;
  const auto leases = lease(world, "me");
  std::vector<std::int64_t> ids;
  for (int n = 0; n < 12; ++n) ids.push_back(world.insert({.key = "account-" + std::to_string(n)}));
  auto rows = sent(claim(world).rows, leases);
  world.remove(ids[1]);
  world.replay(ids[2]);
  world.cancel(ids[3]);
  hold(world, {relay::HoldScope::key, "payment.created", "account-4"});
  set_held(world, {ids[4]});
  for (relay::SentRow& row : rows) {
    if (row.id.value == ids[5]) row.lease.epoch = relay::Epoch{row.lease.epoch.value - 1};
  }
  const auto reply = mark(world, rows);
  CHECK(reply.exceptions.size() == 4);
  CHECK(outcome_of(reply, ids[1]) == relay::MarkOutcome::gone);
  CHECK(outcome_of(reply, ids[2]) == relay::MarkOutcome::gone);
  CHECK(outcome_of(reply, ids[3]) == relay::MarkOutcome::cancelled);
  CHECK(outcome_of(reply, ids[5]) == relay::MarkOutcome::lane_lost);
  for (std::size_t n = 0; n < ids.size(); ++n) {
    const std::string expected = n == 1 ? "no row" : n == 2 || n == 5 ? "PENDING" : "SENT";
    CHECK(status(world, ids[n]) == expected);
  }
}

TEST_CASE_TEMPLATE_DEFINE("where sent rows are erased, they are gone, and a repeat succeeds", World,
                          source_erase) {
  World world;
  const auto leases = lease(world, "me");
  for (int n = 0; n < 5; ++n) world.insert({.key = "account-" + std::to_string(n)});
  const auto rows = sent(claim(world).rows, leases);
  CHECK(mark(world, rows, relay::AfterSent::erase).exceptions.empty());
  for (const relay::SentRow& row : rows) CHECK_FALSE(world.row(row.id.value));
  CHECK(mark(world, rows, relay::AfterSent::erase).exceptions.empty());
}

// As after a failover to a standby that lagged, a restore, or TRUNCATE … RESTART IDENTITY.
TEST_CASE_TEMPLATE_DEFINE(
    "an id that names another row by now marks, erases and records nothing, and is told as replaced", World,
    source_mark_replaced) {
  World world;
  const auto leases = lease(world, "me");
  const std::int64_t id = world.insert({.key = std::nullopt});
  const std::int64_t other = world.insert({.key = std::nullopt});
  auto rows = sent(claim(world).rows, leases);
  world.replace(id);
  CHECK(outcome_of(mark(world, rows), id) == relay::MarkOutcome::replaced);
  CHECK(status(world, id) == "PENDING");
  CHECK(status(world, other) == "SENT");
  const auto old = std::ranges::find(rows, relay::RowId{id}, &relay::SentRow::id);
  auto here = sent(claim(world).rows, leases);  // where the other row lies, and under the old name
  here.front().msg_id = old->msg_id;
  for (const auto after : {relay::AfterSent::mark, relay::AfterSent::erase}) {
    CHECK(outcome_of(mark(world, here, after), id) == relay::MarkOutcome::replaced);
    CHECK(outcome_of(mark(world, {*old}, after), id) == relay::MarkOutcome::replaced);
    CHECK(status(world, id) == "PENDING");
  }
  world.cancel(id);
  CHECK(outcome_of(mark(world, here), id) == relay::MarkOutcome::replaced);
  CHECK(status(world, id) == "CANCELLED");
}

TEST_CASE_TEMPLATE_DEFINE("an id that names another row by now is neither buried nor set HELD", World,
                          source_write_replaced) {
  World world;
  const auto leases = lease(world, "me");
  const std::int64_t id = world.insert({});
  const relay::Message m = claim(world).rows.front();
  hold(world, key_hold);
  world.replace(id);
  asked<void>(world, [&](auto done) { world.source().set_held({name_of(m)}, std::move(done)); });
  CHECK(status(world, id) == "PENDING");
  release(world, key_hold);
  bury(world, {m.id, m.msg_id, m.address, lease_of(leases, m.shard), "too large", key_hold});
  CHECK(status(world, id) == "PENDING");
  CHECK_FALSE(world.hold_exists(key_hold));
}

TEST_CASE_TEMPLATE_DEFINE(
    "what is in flight leaves nothing out of a claim but itself: another row may have its id", World,
    source_except_replaced) {
  World world;
  const std::int64_t id = world.insert({});
  const std::int64_t due = world.insert({.due_in = Millis{-1000}});
  const auto batch = claim(world);
  for (const relay::Look look : {relay::Look::flat, relay::Look::by_shard}) {
    for (const bool floors : {false, true}) {
      auto request = request_for(look);
      if (floors) request.floors.assign(relay::shard_count, relay::RowId{id - 1});
      request.except = {name_of(batch.rows.front()), name_of(batch.due.front())};
      const auto none = claim(world, request);
      CHECK(none.rows.empty());
      CHECK(none.due.empty());
      for (relay::RowName& name : request.except) name.msg_id.bytes[0] ^= 1;
      const auto both = claim(world, request);
      CHECK(ids_of(both.rows) == std::vector{id});
      CHECK(ids_of(both.due) == std::vector{due});
    }
  }
}

TEST_CASE_TEMPLATE_DEFINE("of two rows with one id each is marked for itself", World, source_equal_ids) {
  World world;
  const auto leases = lease(world, "me");
  const std::int64_t id = world.insert({.key = "scheduled", .due_in = Millis{-1000}});
  world.pass(Millis{2});
  world.insert({.key = "at once", .id = id});
  const auto batch = claim(world);
  REQUIRE(batch.rows.size() == 1);
  REQUIRE(batch.due.size() == 1);
  auto at_once = sent(batch.rows, leases, 100);
  auto scheduled = sent(batch.due, leases, 200);
  at_once.front().address = scheduled.front().address = {};  // both have moved since
  CHECK(mark(world, at_once).exceptions.empty());
  CHECK(world.rows(id)[0].status == "PENDING");
  CHECK(world.rows(id)[1].status == "SENT");
  at_once.push_back(scheduled.front());
  CHECK(mark(world, at_once).exceptions.empty());
  CHECK(world.rows(id)[0].offset == 200);
  CHECK(world.rows(id)[1].offset == 100);
}

TEST_CASE_TEMPLATE_DEFINE("a row that a lane's ledger names and that is not of that lane is not marked",
                          World, source_mark_lane) {
  World world;
  const auto leases = lease(world, "me");
  const std::int64_t id = world.insert({});
  const relay::Message m = claim(world).rows.front();
  auto row = sent({m}, leases).front();
  row.address = {};
  const relay::LaneId lane = relay::lane_of(m.shard, 5);
  row.of = relay::LaneOf{relay::LaneId{static_cast<std::int16_t>((lane.value + 1) % 5)}, 5};
  CHECK(outcome_of(mark(world, {row}), id) == relay::MarkOutcome::replaced);
  CHECK(status(world, id) == "PENDING");
  row.of = relay::LaneOf{lane, 5};
  CHECK(mark(world, {row}).exceptions.empty());
  CHECK(status(world, id) == "SENT");
}

}  // namespace outbox::test
