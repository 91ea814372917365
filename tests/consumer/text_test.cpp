#include "consumer/core/text.hpp"

#include <doctest/doctest.h>

using namespace outbox;
using namespace std::string_literals;
using namespace std::string_view_literals;

TEST_CASE("text is well-formed UTF-8 without NUL") {
  for (const auto& good : {""s, "abc"s, "\x01\x1f"s, "é"s, "€"s, "😀"s, "\xed\x9f\xbf"s, "\xf4\x8f\xbf\xbf"s})
    CHECK(is_text(good));
  for (const auto& bad : {"\0"s, "\xff"s, "\xc0\x80"s, "\xc3"s, "\xe2\x82"s, "\xed\xa0\x80"s,
                          "\xf4\x90\x80\x80"s, "\xe0\x80\x80"s, "\xf0\x80\x80\x80"s, "\x80"s})
    CHECK_FALSE(is_text(bad));
}

TEST_CASE("to_text gives text, never cuts a character and never exceeds its bound") {
  CHECK(to_text("a\0b\xff"s, 100) == "a?b?");
  CHECK(to_text("a€€", 6) == "a€");
  CHECK(to_text("a€€", 7) == "a€€");
  CHECK(to_text("abc", 0).empty());
}

TEST_CASE("headers keep their order, their doubles, their nulls and every byte") {
  const Header headers[] = {{"a", "x\"\\\n"}, {"a", std::nullopt}, {"b", "\xff\x00"sv}, {"\xfe", ""}};
  CHECK(headers_json(headers) ==
        R"([["a","x\"\\\u000a"],["a",null],["b",{"base64":"/wA="}],[{"base64":"/g=="},""]])");
  CHECK(headers_json({}) == "[]");
}
