#include "relay/core/message/topic_map.hpp"

#include <doctest/doctest.h>

using namespace outbox::relay;

namespace {

TopicMap map_of(const TopicRules& rules) {
  const auto map = TopicMap::make(rules);
  REQUIRE_MESSAGE(map, map.error().text());
  return *map;
}
std::string refused(const TopicRules& rules) {
  const auto map = TopicMap::make(rules);
  return map ? "" : map.error().message;
}

}  // namespace

TEST_CASE("without rules every topic is allowed and keeps its name") {
  for (const TopicMap& map : {TopicMap{}, map_of({})}) {
    CHECK(map.plain());
    CHECK(!map.refusal("anything"));
    CHECK(map.to_kafka("anything") == "anything");
  }
}

TEST_CASE("only what the allow list names may pass") {
  const TopicMap map = map_of({.allow = " payment.* ,orders, *_v2,a*z"});
  for (const char* topic : {"payment.", "payment.created", "orders", "_v2", "x_v2", "az", "abz"}) {
    CAPTURE(topic);
    CHECK(!map.refusal(topic));
  }
  for (const char* topic : {"payment", "xpayment.a", "orders2", "order", "v2", "a", "z", "azb", ""}) {
    CAPTURE(topic);
    CHECK(map.refusal(topic) == "topics.allow does not name it");
  }
  CHECK(map_of({.allow = "a*a"}).refusal("a"));  // the star's two sides do not overlap
}

TEST_CASE("no row goes to a ledger or to a topic of Kafka's own, by whatever name and way") {
  TopicMap map = map_of({.rewrite = "mine=book, hidden.*=*"});
  map.reserve("book");
  for (const char* topic : {"book", "mine", "hidden.book", "outboxd-ledger-rig", "hidden.outboxd-ledger-rig",
                            "__consumer_offsets", "__transaction_state", "__share_group_state",
                            "__cluster_metadata", "hidden.__consumer_offsets"}) {
    CAPTURE(topic);
    CHECK(map.refusal(topic).value_or("").ends_with("correct the row's topic"));
  }
  for (const char* topic : {"books", "outboxd-ledger", "__consumer_offsets2", "__mine", "hidden.x"}) {
    CAPTURE(topic);
    CHECK(!map.refusal(topic));
  }
}

TEST_CASE("the first rewrite that fits is taken, its star is carried over, and the prefix comes before it") {
  const TopicMap map =
      map_of({.prefix = "eu.", .rewrite = "audit.*=log.*.raw, audit.x=never, old=new, *_v1=*"});
  CHECK_FALSE(map.plain());
  CHECK(map.to_kafka("audit.x") == "eu.log.x.raw");
  CHECK(map.to_kafka("audit.") == "eu.log..raw");
  CHECK(map.to_kafka("old") == "eu.new");
  CHECK(map.to_kafka("orders_v1") == "eu.orders");
  CHECK(map.to_kafka("older") == "eu.older");
  CHECK(map_of({.rewrite = "*=all"}).to_kafka("x") == "all");
}

TEST_CASE("a rule that cannot be meant is refused with what is wrong") {
  CHECK(refused({.allow = " , "}) == "` , ` allows no topic: `*` allows all");
  CHECK(refused({.allow = "a*b*"}) == "`a*b*` has more than one `*`");
  CHECK(refused({.allow = "a b"}).find("only letters") != std::string::npos);
  CHECK(refused({.rewrite = "a"}) == "`a` has no `=`: write from=to");
  CHECK(refused({.rewrite = "a=b*"}) == "`a=b*` has a `*` behind the `=` and none before it");
  CHECK(refused({.rewrite = "a="}).find("is no topic") != std::string::npos);
  CHECK(refused({.prefix = "a/"}).find("only letters") != std::string::npos);
}
