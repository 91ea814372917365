#include "relay/core/claim/gate.hpp"

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
  Gate gate;
  gate.block(key_k);
  CHECK(gate.blocks(message("t", "k"), ClaimSerial{1'000'000}));
  CHECK_FALSE(gate.blocks(message("t", "other"), ClaimSerial{1}));
  CHECK_FALSE(gate.blocks(message("u", "k"), ClaimSerial{1}));
  CHECK_FALSE(gate.blocks(message("t", std::nullopt), ClaimSerial{1}));
}

TEST_CASE("once recorded, only claims that may not have seen the hold are stopped") {
  Gate gate;
  gate.block(key_k);
  gate.recorded(key_k, ClaimSerial{7});
  CHECK(gate.blocks(message("t", "k"), ClaimSerial{7}));
  CHECK_FALSE(gate.blocks(message("t", "k"), ClaimSerial{8}));
}

TEST_CASE("an entry is forgotten when the last claim that it stops has come back, and no sooner") {
  Gate gate;
  gate.block(key_k);
  gate.block(topic_t);
  gate.recorded(key_k, ClaimSerial{7});
  gate.forget(ClaimSerial{7});
  CHECK(gate.blocks(message("t", "k"), ClaimSerial{7}));
  gate.forget(ClaimSerial{8});
  gate.unblock(topic_t);
  CHECK(gate.empty());
}

TEST_CASE("a blocked topic stops all of its keys, and rows without one") {
  Gate gate;
  gate.block(topic_t);
  CHECK(gate.blocks(message("t", "any"), ClaimSerial{1}));
  CHECK(gate.blocks(message("t", std::nullopt), ClaimSerial{1}));
}
