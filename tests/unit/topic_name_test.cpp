#include "relay/core/message/topic_name.hpp"

#include <doctest/doctest.h>

#include <string>

using outbox::relay::topic_name_fault;

TEST_CASE("a topic's name is judged as Kafka judges it") {
  for (const char* name : {"a", "payment.created", "A_b-9", "...", "_"}) CHECK(!topic_name_fault(name));
  for (const char* name : {"", ".", "..", "a b", "a/b", "caf\xc3\xa9", "a\n", "a:b"})
    CHECK(topic_name_fault(name));
  CHECK(!topic_name_fault(std::string(249, 'x')));
  CHECK(topic_name_fault(std::string(250, 'x')));
  CHECK(topic_name_fault(std::string_view{"a\0b", 3}));
}
