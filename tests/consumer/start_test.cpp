#include "consumer/core/start.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace outbox;

TEST_CASE("a group that never committed is new: all its partitions start by start_at") {
  const std::vector<Committed> topic = {{.partition = 0}, {.partition = 1}};
  CHECK(born_of(topic) == 2);
  CHECK(start_of(1, born_of(topic), StartAt::end) == StartAt::end);
}

TEST_CASE("what a member committed first tells the others which partitions are new") {
  const std::vector<Committed> topic = {
      {.partition = 0, .next = 7, .metadata = born_metadata(2)}, {.partition = 1}, {.partition = 2}};
  CHECK(born_of(topic) == 2);
  CHECK(start_of(1, born_of(topic), StartAt::end) == StartAt::end);
  CHECK(start_of(2, born_of(topic), StartAt::end) == StartAt::beginning);
}

TEST_CASE("in a group that another program committed for, an uncommitted partition starts at its beginning") {
  const std::vector<Committed> topic = {{.partition = 0, .next = 7, .metadata = "kcat"}, {.partition = 1}};
  CHECK(start_of(1, born_of(topic), StartAt::end) == StartAt::beginning);
}

TEST_CASE("only our own metadata is read") {
  CHECK(parse_born(born_metadata(12)) == 12);
  for (const auto* other :
       {"", "outbox:born=", "outbox:born=x", "outbox:born=1 ", "outbox:born=-1", "born=1"})
    CHECK_FALSE(parse_born(other).has_value());
}
