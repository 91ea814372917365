#pragma once
// The laws of Source::claim. Part of source_contract.hpp.

#include "tests/contract/source_contract.hpp"

namespace outbox::test {

inline const auto both_looks = {relay::Look::flat, relay::Look::by_shard};

TEST_CASE_TEMPLATE_DEFINE("a smaller id that commits after a larger one was sent is found", World,
                          source_unsent) {
  World world;
  const auto leases = lease(world, "me");
  const std::int64_t early = world.next_id();
  const std::int64_t late = world.insert({});
  const auto first = claim(world);
  REQUIRE(ids_of(first.rows) == std::vector{late});
  mark(world, sent(first.rows, leases));
  CHECK(claim(world).rows.empty());
  world.insert({.id = early});
  for (const relay::Look look : both_looks) CHECK(ids_of(claim(world, look).rows) == std::vector{early});
}

TEST_CASE_TEMPLATE_DEFINE("a row named in `except` is not handed out", World, source_except) {
  World world;
  const std::int64_t in_flight = world.insert({});
  const std::int64_t other = world.insert({});
  const std::int64_t due = world.insert({.due_in = Millis{-1000}});
  for (const relay::Look look : both_looks) {
    auto request = request_for(look);
    request.except = {name_of(world, in_flight), name_of(world, due)};
    const auto batch = claim(world, request);
    CHECK(ids_of(batch.rows) == std::vector{other});
    CHECK(batch.due.empty());
  }
}

TEST_CASE_TEMPLATE_DEFINE(
    "rows at or below their shard's floor are left out, and come all the same once rows were let go", World,
    source_floors) {
  World world;
  std::vector<std::int64_t> ids;
  for (int n = 0; n < 3; ++n) ids.push_back(world.insert({}));
  world.insert({.due_in = Millis{-1000}});
  const auto all = claim(world);
  REQUIRE(ids_of(all.rows) == ids);
  CHECK(all.horizon.oldest_running <= all.horizon.next_transaction);
  for (const relay::Look look : both_looks) {
    auto request = request_for(look);
    request.floors.assign(relay::shard_count, relay::RowId{ids[1]});
    request.releases = claim(world).horizon.releases;
    const auto above = claim(world, request);
    CHECK(ids_of(above.rows) == std::vector{ids[2]});
    CHECK(above.due.size() == 1);  // its place is decided by time
    request.releases = -1;
    CHECK(ids_of(claim(world, request).rows) == ids);
    request.releases = above.horizon.releases;
    hold(world, key_hold);
    release(world, key_hold);
    const auto released = claim(world, request);
    CHECK(ids_of(released.rows) == ids);
    CHECK(released.horizon.releases > above.horizon.releases);
    request.releases = released.horizon.releases;
    request.floors[static_cast<std::size_t>(all.rows.front().shard.value)] = relay::RowId{};
    CHECK(ids_of(claim(world, request).rows) == ids);
  }
}

TEST_CASE_TEMPLATE_DEFINE("rows come by shard, then id", World, source_order) {
  World world;
  for (int n = 0; n < 100; ++n) world.insert({.key = "account-" + std::to_string(n % 17)});
  for (const relay::Look look : both_looks) {
    const auto batch = claim(world, look);
    REQUIRE(batch.rows.size() == 100);
    CHECK(std::ranges::is_sorted(batch.rows, [](const relay::Message& a, const relay::Message& b) {
      return std::tie(a.shard, a.id) < std::tie(b.shard, b.id);
    }));
    CHECK_FALSE(batch.more);
  }
}

TEST_CASE_TEMPLATE_DEFINE("only rows of the shards asked for are handed out, and a key stays in one", World,
                          source_shards) {
  World world;
  for (int n = 0; n < 64; ++n) world.insert({.key = "account-" + std::to_string(n % 16)});
  const auto all = claim(world);
  const relay::Shard wanted = all.rows.front().shard;
  std::set<std::int64_t> expected;
  for (const relay::Message& m : all.rows) {
    if (m.shard == wanted) expected.insert(m.id.value);
    for (const relay::Message& other : all.rows) {
      if (m.key == other.key) CHECK(m.shard == other.shard);
    }
  }
  for (const relay::Look look : both_looks) {
    auto request = request_for(look);
    request.shards = {wanted};
    CHECK(id_set(claim(world, request).rows) == expected);
  }
}

TEST_CASE_TEMPLATE_DEFINE(
    "a claim brings rows_max rows at most, the oldest of each shard, and says there is more", World,
    source_rows_max) {
  World world;
  std::vector<std::int64_t> ids;
  for (int n = 0; n < 20; ++n) ids.push_back(world.insert({}));
  for (const relay::Look look : both_looks) {
    auto request = request_for(look);
    request.shards = {claim(world).rows.front().shard};
    request.rows_max = 5;
    const auto batch = claim(world, request);
    CHECK(ids_of(batch.rows) == std::vector(ids.begin(), ids.begin() + 5));
    CHECK(batch.more);
  }
}

inline std::string body_of_bytes(std::size_t bytes) {
  return '"' + std::string(bytes - 2, 'x') + '"';
}

inline std::int64_t bytes_of(const relay::Batch& batch) {
  std::int64_t bytes = 0;
  for (const auto* rows : {&batch.rows, &batch.due}) {
    for (const relay::Message& m : *rows) bytes += static_cast<std::int64_t>(m.body ? m.body->size() : 0);
  }
  return bytes;
}

TEST_CASE_TEMPLATE_DEFINE("the bodies of a claim stay within bytes_max, and in the end every row comes",
                          World, source_bytes_max) {
  for (const relay::Look look : both_looks) {
    World world;
    std::set<std::int64_t> left;
    for (int n = 0; n < 60; ++n) {
      NewRow row{.key = "account-" + std::to_string(n % 7), .body = body_of_bytes(n % 5 == 0 ? 4000 : 300)};
      if (n % 10 == 3) row.due_in = Millis{-1000};
      left.insert(world.insert(row));
    }
    auto request = request_for(look);
    request.bytes_max = 9000;
    for (int round = 0; !left.empty(); ++round) {
      REQUIRE(round < 200);
      const auto batch = claim(world, request);
      CHECK(bytes_of(batch) <= request.bytes_max);
      REQUIRE(batch.rows.size() + batch.due.size() > 0);
      for (const auto* rows : {&batch.rows, &batch.due}) {
        for (const relay::Message& m : *rows) {
          REQUIRE(left.erase(m.id.value) == 1);
          request.except.push_back(name_of(m));
        }
      }
      if (!left.empty()) CHECK(batch.more);
    }
    CHECK_FALSE(claim(world, request).more);
  }
}

TEST_CASE_TEMPLATE_DEFINE("one row is always allowed, whatever its size, and it comes alone", World,
                          source_one_row) {
  for (const relay::Look look : both_looks) {
    World world;
    const std::int64_t large = world.insert({.body = body_of_bytes(5000)});
    const std::int64_t small = world.insert({.body = body_of_bytes(50)});
    auto request = request_for(look);
    request.bytes_max = 1000;
    const auto batch = claim(world, request);
    CHECK(ids_of(batch.rows) == std::vector{large});
    CHECK(batch.rows.front().body == body_of_bytes(5000));
    CHECK(batch.more);
    request.except = {name_of(world, large)};
    CHECK(ids_of(claim(world, request).rows) == std::vector{small});
  }
}

TEST_CASE_TEMPLATE_DEFINE("a shard of large rows does not starve its neighbours under backlog", World,
                          source_fair) {
  World world;
  for (int n = 0; n < 40; ++n) world.insert({.key = "large", .body = body_of_bytes(3000)});
  for (int n = 0; n < 10; ++n) world.insert({.key = "small-" + std::to_string(n), .body = body_of_bytes(30)});
  auto request = request_for(relay::Look::by_shard);
  request.bytes_max = 4000;
  std::set<std::string> seen;
  for (int round = 0; round < 100 && seen.size() < 11; ++round) {
    const auto batch = claim(world, request);
    for (const relay::Message& m : batch.rows) {
      seen.emplace(*m.key);
      request.except.push_back(name_of(m));
    }
    REQUIRE_FALSE(batch.rows.empty());
    if (seen.contains("large") && seen.size() < 11) {
      CHECK(request.except.size() < 49);  // the small ones come before the large ones are through
    }
  }
  CHECK(seen.size() == 11);
}

TEST_CASE_TEMPLATE_DEFINE("due rows come by the time they were scheduled for, then id", World, source_due) {
  World world;
  const std::int64_t later = world.insert({.due_in = Millis{-1000}});
  const std::int64_t earlier = world.insert({.due_in = Millis{-5000}});
  const std::int64_t plain = world.insert({});
  for (const relay::Look look : both_looks) {
    const auto batch = claim(world, look);
    CHECK(ids_of(batch.due) == std::vector{earlier, later});
    CHECK(ids_of(batch.rows) == std::vector{plain});
    REQUIRE(batch.due.front().available_at);
    CHECK(*batch.due.front().available_at < *batch.due.back().available_at);
    CHECK_FALSE(batch.rows.front().available_at);
    CHECK_FALSE(batch.next_due);
  }
}

TEST_CASE_TEMPLATE_DEFINE("a row whose time lies ahead is not handed out before, and next_due says when",
                          World, source_not_yet_due) {
  World world;
  world.insert({.due_in = Millis{3'600'000}});
  const std::int64_t soon = world.insert({.due_in = Millis{400}});
  const auto before = claim(world);
  CHECK(before.rows.empty());
  if (before.due.empty()) REQUIRE(before.next_due);
  std::optional<relay::Batch> batch;
  for (int n = 0; n < 1000 && (!batch || batch->due.empty()); ++n) {
    world.pass(Millis{10});
    batch = claim(world);
  }
  CHECK(ids_of(batch->due) == std::vector{soon});
  REQUIRE(batch->next_due);
  CHECK(*batch->next_due > *batch->due.front().available_at);
}

TEST_CASE_TEMPLATE_DEFINE("a due row larger than the budget comes, and does not keep other rows away", World,
                          source_large_due) {
  for (const relay::Look look : both_looks) {
    World world;
    const std::int64_t large = world.insert({.body = body_of_bytes(5000), .due_in = Millis{-1000}});
    const std::int64_t plain = world.insert({.body = body_of_bytes(50)});
    std::set<std::int64_t> seen;
    auto request = request_for(look);
    request.bytes_max = 1000;
    for (int round = 0; round < 5 && seen.size() < 2; ++round) {
      const auto batch = claim(world, request);
      CHECK((bytes_of(batch) <= request.bytes_max || batch.rows.size() + batch.due.size() == 1));
      for (const auto* rows : {&batch.rows, &batch.due}) {
        for (const relay::Message& m : *rows) {
          seen.insert(m.id.value);
          request.except.push_back(name_of(m));
        }
      }
    }
    CHECK(seen == std::set{large, plain});
  }
}

TEST_CASE_TEMPLATE_DEFINE("a claim that a limit cut short among the due rows says behind which one", World,
                          source_due_cut) {
  World world;
  std::vector<std::int64_t> ids;
  for (int n = 0; n < 5; ++n)
    ids.push_back(world.insert({.body = body_of_bytes(300), .due_in = Millis{-1000 + n}}));
  for (const relay::Look look : both_looks) {
    auto request = request_for(look);
    CHECK_FALSE(claim(world, request).due_cut);
    request.rows_max = 3;
    const auto few = claim(world, request);
    REQUIRE(few.due_cut);
    CHECK(ids_of(few.due) == std::vector(ids.begin(), ids.begin() + 3));
    CHECK(few.due_cut->id.value == ids[2]);
    CHECK(few.due_cut->available_at == *few.due.back().available_at);
    CHECK(few.more);
    request.rows_max = 5000;
    request.bytes_max = 1500;
    const auto small = claim(world, request);
    REQUIRE(small.due_cut);
    CHECK(small.due.size() < 5);
    CHECK(small.due_cut->id >= small.due.back().id);
    CHECK(small.more);
  }
}

TEST_CASE_TEMPLATE_DEFINE("a due row that somebody has locked is told as such, and keeps no other away",
                          World, source_due_locked) {
  World world;
  const std::int64_t first = world.insert({.key = "a", .due_in = Millis{-3000}});
  const std::int64_t locked =
      world.insert({.key = "b", .body = body_of_bytes(5000), .due_in = Millis{-2000}});
  const std::int64_t last = world.insert({.key = "c", .due_in = Millis{-1000}});
  world.lock(locked);
  for (const relay::Look look : both_looks) {
    auto request = request_for(look);
    request.rows_max = 2;
    const auto batch = claim(world, request);
    REQUIRE(ids_of(batch.due) == std::vector{first, locked, last});
    CHECK(batch.due[0].locked == relay::Locked::no);
    CHECK(batch.due[1].locked == relay::Locked::yes);
    CHECK(batch.due[1].key == "b");
    CHECK(batch.due[2].locked == relay::Locked::no);
    request.rows_max = 1;  // what is locked lies behind the limit
    CHECK(ids_of(claim(world, request).due) == std::vector{first});
    request.rows_max = 5000;
    request.except = {name_of(world, first), name_of(world, last)};
    CHECK(ids_of(claim(world, request).due) == std::vector{locked});
    request.except.push_back(name_of(world, locked));
    CHECK(claim(world, request).due.empty());
  }
  world.unlock();
  for (const relay::Look look : both_looks) {
    for (const relay::Message& m : claim(world, look).due) CHECK(m.locked == relay::Locked::no);
  }
}

TEST_CASE_TEMPLATE_DEFINE("what a row holds goes out unchanged", World, source_content) {
  World world;
  world.insert({.topic = "a.topic", .key = std::nullopt, .body = std::nullopt});
  world.insert({.topic = "a.topic", .key = "", .body = R"({ "n" : 1.10 , "e":[],"u":"\u00e9" })"});
  world.insert({.topic = "b", .key = "k\x01\xc3\xa9", .headers = {{"traceparent", "00-ab-01"}, {"z", ""}}});
  auto batch = claim(world);  // the views live as long as it does
  auto& rows = batch.rows;
  std::ranges::sort(rows, {}, &relay::Message::id);
  REQUIRE(rows.size() == 3);
  CHECK_FALSE(rows[0].key);
  CHECK_FALSE(rows[0].body);
  CHECK(rows[0].topic == "a.topic");
  CHECK(rows[0].headers.empty());
  CHECK(rows[1].key == "");
  CHECK(rows[1].body == R"({ "n" : 1.10 , "e":[],"u":"\u00e9" })");
  CHECK(rows[2].key == "k\x01\xc3\xa9");
  CHECK(rows[2].topic == "b");
  std::set<std::pair<std::string, std::string>> headers;
  for (const relay::Header& h : rows[2].headers) headers.emplace(h.name, h.value.value_or("NULL"));
  CHECK(headers == std::set<std::pair<std::string, std::string>>{{"traceparent", "00-ab-01"}, {"z", ""}});
  CHECK(rows[0].msg_id != rows[1].msg_id);
  CHECK(rows[0].generation == 0);
}

TEST_CASE_TEMPLATE_DEFINE(
    "a row that names its partition brings it along, whatever number it is, and another none", World,
    source_partition) {
  World world;
  const std::int64_t before = world.insert({});
  CHECK_FALSE(claim(world).rows.front().partition);
  world.remove(before);
  world.name_partitions();
  using Named = std::map<std::int64_t, std::optional<std::int32_t>>;
  Named expected;
  for (const auto partition : {std::optional<std::int32_t>{}, {0}, {7}, {-1}, {2147483647}}) {
    expected[world.insert({.partition = partition})] = partition;
    expected[world.insert({.partition = partition, .due_in = Millis{-1000}})] = partition;
  }
  for (const relay::Look look : both_looks) {
    for (const std::int64_t floor : {std::int64_t{0}, before}) {
      auto request = request_for(look);
      if (floor > 0) request.floors.assign(relay::shard_count, relay::RowId{floor});
      request.releases = claim(world).horizon.releases;
      const auto batch = claim(world, request);
      CHECK(batch.due.size() == 5);
      Named named;
      for (const auto* rows : {&batch.rows, &batch.due}) {
        for (const relay::Message& m : *rows) {
          auto& at = named[m.id.value];
          if (m.partition) at = m.partition->value;
        }
      }
      CHECK(named == expected);
    }
  }
}

}  // namespace outbox::test
