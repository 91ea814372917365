#include "relay/core/message/text.hpp"

#include <doctest/doctest.h>

using outbox::relay::bounded_text;

TEST_CASE("stored text is valid UTF-8 without NUL: what is not becomes a question mark") {
  CHECK(bounded_text("plain", 100) == "plain");
  CHECK(bounded_text("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x92\xB6", 100) == "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x92\xB6");
  CHECK(bounded_text(std::string_view{"a\0b", 3}, 100) == "a?b");
  CHECK(bounded_text("\xC3", 100) == "?");
  CHECK(bounded_text("\xC0\x80", 100) == "??");
  CHECK(bounded_text("\xED\xA0\x80", 100) == "???");
  CHECK(bounded_text("\xF4\x90\x80\x80", 100) == "????");
  CHECK(bounded_text("\xE0\x80\xAF", 100) == "???");
}

TEST_CASE("stored text is cut between characters, never inside one") {
  CHECK(bounded_text("abc", 2) == "ab");
  CHECK(bounded_text("a\xE2\x82\xAC", 3) == "a");
  CHECK(bounded_text("a\xE2\x82\xAC", 4) == "a\xE2\x82\xAC");
  CHECK(bounded_text("\xE2\x82\xAC", 0).empty());
}
