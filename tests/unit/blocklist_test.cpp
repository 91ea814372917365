#include "relay/core/claim/blocklist.hpp"

#include <doctest/doctest.h>

using namespace outbox::relay;

namespace {

Message message(std::string_view topic, std::optional<std::string_view> key) {
  Message m;
  m.topic = topic;
  m.key = key;
  return m;
}
const HoldTarget key_k{HoldScope::key, "t", "k"};
const HoldTarget topic_t{HoldScope::topic, "t", ""};

}  // namespace

TEST_CASE("a blocked key stops every claim until its hold is recorded") {
  Blocklist blocklist;
  blocklist.block(key_k);
  CHECK(blocklist.blocks(message("t", "k"), ClaimSerial{1'000'000}));
  CHECK_FALSE(blocklist.blocks(message("t", "other"), ClaimSerial{1}));
  CHECK_FALSE(blocklist.blocks(message("u", "k"), ClaimSerial{1}));
  CHECK_FALSE(blocklist.blocks(message("t", std::nullopt), ClaimSerial{1}));
}

TEST_CASE("once recorded, only claims that may not have seen the hold are stopped") {
  Blocklist blocklist;
  blocklist.block(key_k);
  blocklist.recorded(key_k, ClaimSerial{7});
  CHECK(blocklist.blocks(message("t", "k"), ClaimSerial{7}));
  CHECK_FALSE(blocklist.blocks(message("t", "k"), ClaimSerial{8}));
}

TEST_CASE("an entry is forgotten when the last claim that it stops has come back, and no sooner") {
  Blocklist blocklist;
  blocklist.block(key_k);
  blocklist.block(topic_t);
  blocklist.recorded(key_k, ClaimSerial{7});
  blocklist.forget(ClaimSerial{7});
  CHECK(blocklist.blocks(message("t", "k"), ClaimSerial{7}));
  blocklist.forget(ClaimSerial{8});
  blocklist.unblock(topic_t);
  CHECK(blocklist.empty());
}

TEST_CASE("a blocked topic stops all of its keys, and rows without one") {
  Blocklist blocklist;
  blocklist.block(topic_t);
  CHECK(blocklist.blocks(message("t", "any"), ClaimSerial{1}));
  CHECK(blocklist.blocks(message("t", std::nullopt), ClaimSerial{1}));
}
