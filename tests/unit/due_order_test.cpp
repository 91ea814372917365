#include "relay/core/claim/due_order.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace outbox;
using namespace outbox::relay;

namespace {

WallTime at(int second) {
  return WallTime{std::chrono::seconds{second}};
}

Message row(std::int64_t id, std::int16_t shard, int created) {
  Message m;
  m.id = RowId{id};
  m.shard = Shard{shard};
  m.created_at = at(created);
  return m;
}

Message due(std::int64_t id, std::int16_t shard, int available) {
  Message m = row(id, shard, 0);
  m.available_at = at(available);
  return m;
}

std::vector<std::int64_t> ids(const std::vector<Message>& messages) {
  std::vector<std::int64_t> out;
  for (const Message& m : messages) out.push_back(m.id.value);
  return out;
}

std::vector<std::int64_t> ordered(Batch batch) {
  return ids(in_publishing_order(batch));
}

}  // namespace

TEST_CASE("a due row stands before the first row of its shard that was created after it came due") {
  CHECK(ordered({.rows = {row(1, 0, 10), row(2, 0, 20), row(3, 0, 30)}, .due = {due(9, 0, 20)}}) ==
        std::vector<std::int64_t>{1, 2, 9, 3});
}

TEST_CASE("due rows of one shard keep the order in which they came due") {
  CHECK(ordered({.rows = {row(1, 0, 10)}, .due = {due(8, 0, 5), due(9, 0, 6), due(7, 0, 11)}}) ==
        std::vector<std::int64_t>{8, 9, 1, 7});
}

TEST_CASE("a due row of a shard without other rows takes that shard's place") {
  CHECK(ordered({.rows = {row(1, 0, 10), row(2, 5, 10)}, .due = {due(9, 3, 99), due(8, 63, 1)}}) ==
        std::vector<std::int64_t>{1, 9, 2, 8});
}

TEST_CASE("behind a limit a due row waits, since earlier rows of its key may still be there") {
  Batch batch{.rows = {row(1, 0, 10)}, .due = {due(9, 0, 20)}};
  batch.more = true;
  CHECK(ordered(batch) == std::vector<std::int64_t>{1});
  batch.cut = {Shard{4}};
  CHECK(ordered(batch) == std::vector<std::int64_t>{1, 9});
  batch.cut = {Shard{0}};
  CHECK(ordered(batch) == std::vector<std::int64_t>{1});
}
