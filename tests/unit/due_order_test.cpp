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
  return ids(in_publishing_order(batch).rows);
}

Message of_key(Message m, std::string_view key) {
  m.topic = "t";
  m.key = key;
  return m;
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

TEST_CASE("of a due row and one that was begun in the moment it came due, the smaller id goes first") {
  CHECK(ordered({.rows = {row(4, 0, 20), row(6, 0, 20)}, .due = {due(5, 0, 20)}}) ==
        std::vector<std::int64_t>{4, 5, 6});
}

TEST_CASE("where due rows were cut, what comes after the cut waits with all that follows of its key") {
  Batch batch{.rows = {of_key(row(1, 0, 10), "k"), of_key(row(2, 0, 21), "k"), of_key(row(3, 0, 15), "k"),
                       of_key(row(4, 0, 15), "other"), row(5, 0, 30)},
              .due = {of_key(due(9, 0, 20), "k")}};
  batch.more = true;
  batch.cut = {no_shard};
  batch.due_cut = DuePlace{at(20), RowId{9}};
  PublishingOrder order = in_publishing_order(batch);
  CHECK(ids(order.rows) == std::vector<std::int64_t>{1, 9, 4, 5});  // 5 has no key, and so no order
  CHECK(ids(order.waiting) == std::vector<std::int64_t>{2, 3});
}

TEST_CASE("of a claim whose due rows were cut something goes out, also where its shard was cut as well") {
  Batch batch{.rows = {of_key(row(1, 0, 30), "k"), of_key(row(2, 0, 31), "k")},
              .due = {of_key(due(9, 0, 20), "k")}};
  batch.more = true;
  batch.cut = {Shard{0}};
  batch.due_cut = DuePlace{at(20), RowId{9}};
  CHECK(ids(in_publishing_order(batch).rows) == std::vector<std::int64_t>{9});
}

TEST_CASE("behind a locked due row its key waits, and nothing else") {
  Batch batch{
      .rows = {of_key(row(1, 0, 10), "k"), of_key(row(2, 0, 30), "k"), of_key(row(3, 0, 30), "other")},
      .due = {of_key(due(7, 0, 5), "k"), of_key(due(8, 0, 20), "k"), of_key(due(9, 0, 40), "k"),
              due(6, 0, 50)}};
  batch.due[1].locked = Locked::yes;
  batch.due[3].locked = Locked::yes;
  PublishingOrder order = in_publishing_order(batch);
  CHECK(ids(order.rows) == std::vector<std::int64_t>{7, 1, 3});
  CHECK(ids(order.waiting) == std::vector<std::int64_t>{8, 2, 9, 6});
}
