#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cctype>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/uuid.hpp"

namespace outbox {

TEST_CASE("a uuid's text is read back as the same uuid, in either case") {
  CHECK(rc::check([](const std::array<std::uint8_t, 16>& bytes) {
    const Uuid id{bytes};
    std::string text = to_string(id);
    RC_ASSERT(parse_uuid(text) == id);
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return static_cast<char>(std::toupper(c)); });
    RC_ASSERT(parse_uuid(text) == id);
  }));
}

TEST_CASE("nothing but the 36 characters is a uuid") {
  for (const char* text : {"", "0190a6d0-7c1e-7abc-8def-0123456789a", "0190a6d0-7c1e-7abc-8def-0123456789abc",
                           "{0190a6d0-7c1e-7abc-8def-0123456789ab}", "0190a6d07c1e7abc8def0123456789ab",
                           "0190a6d0-7c1e-7abc-8def-0123456789ag", "0190a6d0-7c1e-7abc-8def_0123456789ab"}) {
    CAPTURE(text);
    CHECK(!parse_uuid(text));
  }
}

TEST_CASE("RFC 3339 has six digits and is UTC, also before 1970") {
  CHECK(rfc3339(WallTime{Micros{0}}) == "1970-01-01T00:00:00.000000Z");
  CHECK(rfc3339(WallTime{Micros{-1}}) == "1969-12-31T23:59:59.999999Z");
  CHECK(rfc3339(from_postgres_micros(0)) == "2000-01-01T00:00:00.000000Z");
  CHECK(rfc3339(WallTime{Micros{951'782'400'000'001}}) == "2000-02-29T00:00:00.000001Z");
}

TEST_CASE(
    "a backoff waits between half and all of its step, doubles it up to the maximum, and starts again when "
    "reset") {
  CHECK(rc::check([](std::uint64_t seed) {
    Backoff backoff{{Millis{100}, Millis{1500}}, seed};
    for (const auto step : {100, 200, 400, 800, 1500, 1500}) {
      const auto wait = backoff.next().count();
      RC_ASSERT(wait >= step / 2);
      RC_ASSERT(wait <= step);
    }
    backoff.reset();
    RC_ASSERT(backoff.next() <= Millis{100});
  }));
}

TEST_CASE("two seeds wait differently, one seed alike") {
  const auto waits = [](std::uint64_t seed) {
    Backoff backoff{{Millis{1000}, Millis{100'000}}, seed};
    return std::array{backoff.next(), backoff.next(), backoff.next()};
  };
  CHECK(waits(1) == waits(1));
  CHECK(waits(1) != waits(2));
}

TEST_CASE("an error's text is one line: message, code, advice") {
  CHECK(Error{Disposition::fatal, "28P01", "no entry", "check the password"}.text() ==
        "no entry (28P01); check the password");
  CHECK(Error{Disposition::retry, "", "busy", ""}.text() == "busy");
}
}  // namespace outbox
