#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "pg/timestamp.hpp"

namespace outbox::pg {

TEST_CASE("a time in PostgreSQL's text form is read in whatever zone it was written") {
  const auto text = [](std::string_view t) {
    const auto time = parse_timestamp(t);
    return time ? rfc3339(*time) : "refused";
  };
  CHECK(text("2026-11-29 16:59:37.123456+00") == "2026-11-29T16:59:37.123456Z");
  CHECK(text("2026-11-29 16:59:37.5+00") == "2026-11-29T16:59:37.500000Z");
  CHECK(text("2026-11-29 22:44:37+05:45") == "2026-11-29T16:59:37.000000Z");
  CHECK(text("2026-11-29 11:59:37.000001-05") == "2026-11-29T16:59:37.000001Z");
  CHECK(text("1890-01-01 00:00:00+00:19:32") == "1889-12-31T23:40:28.000000Z");
  CHECK(parse_timestamp("infinity") == WallTime::max());
  CHECK(parse_timestamp("-infinity") == WallTime::min());
}

TEST_CASE("what is no time in ISO form is refused") {
  for (const char* text :
       {"", "2026-11-29", "29.11.2026 16:59:37 UTC", "2026-13-01 00:00:00+00", "2026-02-30 00:00:00+00",
        "0044-03-15 00:00:00+00 BC", "2026-11-29 16:59:37", "2026-11-29T16:59:37+00"}) {
    CAPTURE(text);
    CHECK(!parse_timestamp(text));
  }
}

TEST_CASE("RFC 3339 written with a blank and +00 is read back as the same time") {
  CHECK(rc::check([] {
    const WallTime time{
        Micros{*rc::gen::inRange<std::int64_t>(-62'135'596'800'000'000, 253'402'300'800'000'000)}};
    std::string text = rfc3339(time);
    text[10] = ' ';
    text.replace(text.size() - 1, 1, "+00");
    RC_ASSERT(parse_timestamp(text) == time);
  }));
}

TEST_CASE("times survive the binary form, and so do the infinities") {
  CHECK(rc::check([](std::int32_t seconds, std::uint16_t micros) {
    const WallTime time{std::chrono::seconds{seconds} + Micros{micros}};
    RC_ASSERT(timestamp_from_wire(timestamp_to_wire(time)) == time);
  }));
  CHECK(timestamp_from_wire(timestamp_to_wire(WallTime::max())) == WallTime::max());
  CHECK(timestamp_from_wire(timestamp_to_wire(WallTime::min())) == WallTime::min());
}
}  // namespace outbox::pg
