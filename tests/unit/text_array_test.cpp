#include "relay/postgres/text_array.hpp"

#include <doctest/doctest.h>

using outbox::relay::TextArray;
using namespace std::string_view_literals;

TEST_CASE("an array's elements are read in place, NULLs and empty ones told apart") {
  constexpr auto bytes =
      "\0\0\0\1\0\0\0\1\0\0\0\x19\0\0\0\4\0\0\0\1"
      "\0\0\0\2ab"
      "\xff\xff\xff\xff"
      "\0\0\0\0"
      "\0\0\0\3\xc3\xa9z"sv;
  TextArray array(bytes);
  REQUIRE(array.size() == 4);
  CHECK(array.next() == "ab");
  CHECK_FALSE(array.next());
  CHECK(array.next() == "");
  const auto last = array.next();
  CHECK(last == "\xc3\xa9z");
  CHECK(last->data() + last->size() == bytes.data() + bytes.size());
}

TEST_CASE("an array without elements has no dimension") {
  CHECK(TextArray("\0\0\0\0\0\0\0\0\0\0\0\x19"sv).size() == 0);
}
