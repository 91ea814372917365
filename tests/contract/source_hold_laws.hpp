#pragma once
// The laws of holds and of burying. Part of source_contract.hpp.

#include "tests/contract/source_contract.hpp"

namespace outbox::test {

TEST_CASE_TEMPLATE_DEFINE("a claimed row says whether its key or its topic is on hold", World,
                          source_held_flag) {
  World world;
  const std::int64_t held_key = world.insert({.key = "account-1"});
  const std::int64_t other_key = world.insert({.key = "account-2"});
  const std::int64_t other_topic = world.insert({.topic = "other", .key = "account-1"});
  const std::int64_t no_key = world.insert({.key = std::nullopt});
  const std::int64_t due = world.insert({.key = "account-1", .due_in = Millis{-1000}});
  const auto held_ids = [&](relay::Look look) {
    std::set<std::int64_t> held;
    const auto batch = claim(world, look);
    for (const auto* rows : {&batch.rows, &batch.due}) {
      for (const relay::Message& m : *rows) {
        if (m.held == relay::Held::yes) held.insert(m.id.value);
      }
    }
    return held;
  };
  for (const relay::Look look : {relay::Look::flat, relay::Look::by_shard}) {
    CHECK(held_ids(look).empty());
    hold(world, key_hold);
    CHECK(held_ids(look) == std::set{held_key, due});
    hold(world, topic_hold);
    CHECK(held_ids(look) == std::set{held_key, other_key, no_key, due});
    release(world, topic_hold);
    release(world, key_hold);
    CHECK(!held_ids(look).contains(other_topic));
  }
}

TEST_CASE_TEMPLATE_DEFINE("a HELD row is not claimed until its hold is released, and then in order of id",
                          World, source_held_rows) {
  World world;
  const std::int64_t first = world.insert({});
  const std::int64_t second = world.insert({});
  hold(world, key_hold);
  set_held(world, {first, second});
  CHECK(claim(world).rows.empty());
  CHECK(claim(world, relay::Look::by_shard).rows.empty());
  const std::int64_t third = world.insert({});
  CHECK(world.hold_exists(key_hold));
  CHECK(release(world, key_hold) == relay::Release::done);
  CHECK_FALSE(world.hold_exists(key_hold));
  CHECK(ids_of(claim(world).rows) == std::vector{first, second, third});
}

TEST_CASE_TEMPLATE_DEFINE("a relay never releases a topic that an operator holds, nor the rows behind it",
                          World, source_release_operators) {
  World world;
  const std::int64_t waiting = world.insert({});
  world.pause(topic_hold);
  hold(world, topic_hold);  // the relay's own, a moment later: the operator's stands
  set_held(world, {waiting});
  CHECK(release(world, topic_hold) == relay::Release::kept);
  CHECK(world.hold_exists(topic_hold));
  CHECK(status(world, waiting) == "HELD");
}

TEST_CASE_TEMPLATE_DEFINE("what several reasons hold is let go with the last of them, whichever that is",
                          World, source_reasons) {
  for (const bool operator_first : {true, false}) {
    World world;
    const auto leases = lease(world, "me");
    const std::int64_t dead = world.insert({});
    const std::int64_t behind = world.insert({});
    const relay::Message m = claim(world).rows.front();
    bury(world, {m.id, m.msg_id, m.address, lease_of(leases, m.shard), "too large", key_hold});
    world.pause(key_hold);
    set_held(world, {behind});
    const auto end_one = [&](bool operators) { operators ? world.resume(key_hold) : world.retry(dead); };
    end_one(operator_first);
    CHECK(world.hold_exists(key_hold));
    CHECK(status(world, behind) == "HELD");
    for (const relay::Message& row : claim(world).rows) CHECK(row.held == relay::Held::yes);
    end_one(!operator_first);
    CHECK_FALSE(world.hold_exists(key_hold));
    CHECK(ids_of(claim(world).rows) == std::vector{dead, behind});

    hold(world, topic_hold);
    world.pause(topic_hold);
    set_held(world, {dead, behind});
    if (operator_first) {
      world.resume(topic_hold);
      CHECK(status(world, behind) == "HELD");
      CHECK(release(world, topic_hold) == relay::Release::done);
    } else {
      CHECK(release(world, topic_hold) == relay::Release::kept);
      CHECK(status(world, behind) == "HELD");
      world.resume(topic_hold);
    }
    CHECK_FALSE(world.hold_exists(topic_hold));
    CHECK(ids_of(claim(world).rows) == std::vector{dead, behind});
  }
}

TEST_CASE_TEMPLATE_DEFINE("only waiting rows whose hold exists become HELD", World, source_set_held) {
  World world;
  const auto leases = lease(world, "me");
  const std::int64_t sent_before = world.insert({});
  mark(world, sent(claim(world).rows, leases));
  const std::int64_t of_key = world.insert({});
  const std::int64_t other_key = world.insert({.key = "account-2"});
  const std::int64_t no_key = world.insert({.key = std::nullopt});
  set_held(world, {of_key});
  CHECK(status(world, of_key) == "PENDING");
  hold(world, key_hold);
  hold(world, {relay::HoldScope::topic, "other", ""});
  hold(world, {relay::HoldScope::key, "payment.created", "account-3"});
  set_held(world, {sent_before, of_key, other_key, no_key});
  CHECK(status(world, sent_before) == "SENT");
  CHECK(status(world, of_key) == "HELD");
  CHECK(status(world, other_key) == "PENDING");
  CHECK(status(world, no_key) == "PENDING");
  set_held(world, {of_key});
  CHECK(status(world, of_key) == "HELD");
  hold(world, topic_hold);
  set_held(world, {other_key, no_key});
  CHECK(status(world, other_key) == "HELD");
  CHECK(status(world, no_key) == "HELD");
}

TEST_CASE_TEMPLATE_DEFINE("whichever of set_held and release comes first, no row is left HELD without a hold",
                          World, source_release) {
  World world;
  const std::int64_t id = world.insert({});
  for (int round = 0; round < 20; ++round) {
    hold(world, key_hold);
    int answers = 0;
    const auto done = [&](const auto& result) {
      CHECK(result.has_value());
      ++answers;
    };
    const auto start_release = [&] { world.source().release(key_hold, done); };
    if (round % 2 == 0) start_release();
    world.source().set_held({name_of(world, id)}, done);
    if (round % 2 == 1) start_release();
    world.pump([&] { return answers == 2; });
    CHECK(status(world, id) == "PENDING");
    CHECK_FALSE(world.hold_exists(key_hold));
  }
}

TEST_CASE_TEMPLATE_DEFINE("a hold put in place twice is one, and the topics that a relay holds are told",
                          World, source_held_topics) {
  World world;
  const auto held_topics = [&] {
    return asked<std::vector<std::string>>(world,
                                           [&](auto done) { world.source().held_topics(std::move(done)); });
  };
  CHECK(held_topics().empty());
  hold(world, topic_hold);
  hold(world, topic_hold);
  hold(world, key_hold);
  world.pause({relay::HoldScope::topic, "other", ""});
  CHECK(held_topics() == std::vector<std::string>{"payment.created"});
  release(world, topic_hold);
  CHECK(held_topics().empty());
  CHECK(world.hold_exists(key_hold));
}

// As a lost reply makes it: the relay repeats what was done, and an operator was quicker.
TEST_CASE_TEMPLATE_DEFINE("a repeated burial leaves alone a row that was retried meanwhile", World,
                          source_bury_retried) {
  World world;
  const auto leases = lease(world, "me");
  const std::int64_t id = world.insert({});
  const relay::Message m = claim(world).rows.front();
  const relay::DeadRow dead{m.id,        m.msg_id,     m.address,   lease_of(leases, m.shard),
                            "too large", std::nullopt, m.generation};
  bury(world, dead);
  CHECK(status(world, id) == "DEAD");
  world.replay(id);
  bury(world, dead);
  CHECK(status(world, id) == "PENDING");
}

TEST_CASE_TEMPLATE_DEFINE(
    "a buried row is DEAD with its reason and its hold is there, and a repeat changes nothing", World,
    source_bury) {
  World world;
  const auto leases = lease(world, "me");
  const std::int64_t id = world.insert({});
  const std::int64_t free_id = world.insert({.key = "account-2"});
  const auto rows = claim(world).rows;
  for (const relay::Message& m : rows) {
    const bool with_hold = m.id.value == id;
    bury(world, {m.id, m.msg_id, m.address, lease_of(leases, m.shard), "too large",
                 with_hold ? std::optional(key_hold) : std::nullopt});
  }
  CHECK(status(world, id) == "DEAD");
  CHECK(status(world, free_id) == "DEAD");
  CHECK(world.row(id)->last_error == "too large");
  CHECK(world.hold_exists(key_hold));
  CHECK_FALSE(world.hold_exists({relay::HoldScope::key, "payment.created", "account-2"}));
  CHECK(claim(world).rows.empty());
  release(world, key_hold);
  for (const relay::Message& m : rows) {
    bury(world, {m.id, m.msg_id, m.address, lease_of(leases, m.shard), "again", key_hold});
  }
  CHECK(world.row(id)->last_error == "too large");
  CHECK_FALSE(world.hold_exists(key_hold));
}

TEST_CASE_TEMPLATE_DEFINE(
    "burying does nothing, and succeeds, where the lane is lost or the row no longer waits", World,
    source_bury_lost) {
  World world;
  const auto mine = lease(world, "me");
  const std::int64_t id = world.insert({});
  const auto rows = claim(world).rows;
  asked<void>(world,
              [&](auto done) { world.source().give_back("me", {}, relay::Leaving::yes, std::move(done)); });
  const auto others = lease(world, "other");
  const relay::Message& m = rows.front();
  bury(world, {m.id, m.msg_id, m.address, lease_of(mine, m.shard), "too large", key_hold});
  CHECK(status(world, id) == "PENDING");
  CHECK_FALSE(world.hold_exists(key_hold));
  const std::int32_t later_generation = m.generation + 1;  // it was retried while a repeat was under way
  bury(world,
       {m.id, m.msg_id, m.address, lease_of(others, m.shard), "too large", key_hold, later_generation});
  CHECK(status(world, id) == "PENDING");
  CHECK_FALSE(world.hold_exists(key_hold));
  mark(world, sent(rows, others));
  bury(world, {m.id, m.msg_id, m.address, lease_of(others, m.shard), "too large", key_hold});
  CHECK(status(world, id) == "SENT");
  CHECK_FALSE(world.hold_exists(key_hold));
}

}  // namespace outbox::test
