#include <doctest/doctest.h>

#include <array>
#include <limits>

#include "tests/support/postgres.hpp"

namespace outbox {
namespace {

using pg::Format;
using pg::Params;
using pg::Rows;

struct Server {
  test::TestDatabase database;
  pg::Session session = database.session();

  /// `SELECT <expression>` in both result formats, each given to `check`.
  template <class Check>
  void both(const std::string& expression, const Params& params, const Check& check) {
    for (const Format format : {Format::text, Format::binary}) {
      check(test::must(session.exec("SELECT " + expression, params, format)));
      check(test::must(session.exec_prepared("SELECT " + expression, params, format)));
    }
  }
};

constexpr std::byte operator""_b(unsigned long long v) {
  return static_cast<std::byte>(v);
}

const WallTime moment{Micros{1'795'971'577'123'456}};
const Uuid id = *parse_uuid("0190a6d0-7c1e-7abc-8def-0123456789ab");

}  // namespace

TEST_CASE("every scalar parameter arrives and comes back unchanged, in text and in binary results") {
  Server on;
  for (const std::int64_t v : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0},
                               std::numeric_limits<std::int64_t>::max()}) {
    on.both("$1", Params{}.i64(v), [&](const Rows& r) { CHECK(r.integer(0, 0) == v); });
  }
  on.both("$1, $2", Params{}.i32(std::numeric_limits<std::int32_t>::min()).i16(-32768), [](const Rows& r) {
    CHECK(r.integer(0, 0) == std::numeric_limits<std::int32_t>::min());
    CHECK(r.integer(0, 1) == -32768);
  });
  on.both("$1, $2", Params{}.boolean(true).boolean(false), [](const Rows& r) {
    CHECK(r.boolean(0, 0));
    CHECK(!r.boolean(0, 1));
  });
  on.both("$1", Params{}.uuid(id), [](const Rows& r) { CHECK(r.uuid(0, 0) == id); });
  on.both("$1", Params{}.timestamptz(moment), [](const Rows& r) { CHECK(r.timestamptz(0, 0) == moment); });
  on.both("$1, $2", Params{}.timestamptz(WallTime::max()).timestamptz(WallTime::min()), [](const Rows& r) {
    CHECK(r.timestamptz(0, 0) == WallTime::max());
    CHECK(r.timestamptz(0, 1) == WallTime::min());
  });
}

TEST_CASE("texts keep every byte, and empty and null are told apart") {
  Server on;
  const std::string odd = "tab\t quote' \"dq\" back\\slash \x01 é 漢 😀";
  on.both("$1, $2, $3", Params{}.text(odd).text("").text(std::nullopt), [&](const Rows& r) {
    CHECK(r.text(0, 0) == odd);
    CHECK(r.text(0, 1).empty());
    CHECK(r.is_null(0, 2));
    CHECK(!r.text_or_null(0, 2));
  });
  on.both("$1::json::text, $2::numeric::text, $3::int",
          Params{}.untyped(R"({"n":1.10,"u":"\u00e9"})").untyped("1.50").null(), [](const Rows& r) {
            CHECK(r.text(0, 0) == R"({"n":1.10,"u":"\u00e9"})");
            CHECK(r.text(0, 1) == "1.50");
            CHECK(r.is_null(0, 2));
          });
}

TEST_CASE("a NUL inside a text is refused by the server, never cut in silence") {
  Server on;
  const std::string_view nul("a\0b", 3);
  for (const Params& params : {Params{}.text(nul), Params{}.untyped(nul)}) {
    const auto refused = on.session.exec("SELECT $1::text", params);
    REQUIRE(!refused);
    CHECK(refused.error().code == "22021");
    CHECK(refused.error().disposition == Disposition::quarantine);
  }
}

TEST_CASE("bytes keep NUL and every other value, also where bytea_output is escape") {
  Server on;
  test::must(on.session.exec("SET bytea_output = 'escape'"));
  std::array<std::byte, 256> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i);
  const auto rows = test::must(on.session.exec("SELECT $1", Params{}.bytes(all), Format::binary));
  const std::string_view back = rows.text(0, 0);
  CHECK(std::equal(back.begin(), back.end(), all.begin(), all.end(),
                   [](char a, std::byte b) { return static_cast<std::byte>(a) == b; }));
}

TEST_CASE("arrays arrive element by element, also empty and with nulls") {
  Server on;
  const std::array<std::int16_t, 2> shorts{-7, 63};
  const std::array<std::int32_t, 3> ints{1, -2, 3};
  const std::array<std::int64_t, 1> longs{1'000'000'000'000};
  const std::array<pg::Oid, 1> oids{4'000'000'000};
  const std::array<pg::Tid, 2> tids{pg::Tid{0, 1}, pg::Tid{4'000'000'000, 65'535}};
  const std::array<Uuid, 1> uuids{id};
  const std::array<WallTime, 2> times{moment, WallTime::min()};
  on.both(
      "($1::int2[])[2], ($2::int4[])[2], ($3::int8[])[1], ($4::oid[])[1], ($5::tid[])[2], ($6::uuid[])[1], "
      "($7::timestamptz[])[1], array_length($2, 1)",
      Params{}.i16s(shorts).i32s(ints).i64s(longs).oids(oids).tids(tids).uuids(uuids).timestamptzs(times),
      [&](const Rows& r) {
        CHECK(r.integer(0, 0) == 63);
        CHECK(r.integer(0, 1) == -2);
        CHECK(r.integer(0, 2) == longs[0]);
        CHECK(r.integer(0, 3) == 4'000'000'000);
        CHECK(r.tid(0, 4).block == 4'000'000'000);
        CHECK(r.tid(0, 4).offset == 65'535);
        CHECK(r.uuid(0, 5) == id);
        CHECK(r.timestamptz(0, 6) == moment);
        CHECK(r.integer(0, 7) == 3);
      });
  const std::array<std::optional<std::string_view>, 3> texts{"a", std::nullopt, ""};
  const std::array<std::byte, 2> body{0_b, 255_b};
  const std::array<std::optional<std::span<const std::byte>>, 2> bodies{std::nullopt, body};
  const std::array<std::string_view, 1> plain{"x,y\"{}"};
  on.both(
      "($1::text[])[1], ($1::text[])[2], ($1::text[])[3], ($2::bytea[])[1] IS NULL, ($2::bytea[])[2] = "
      "'\\x00ff', "
      "($3::text[])[1], cardinality($4::int8[])",
      Params{}.texts(texts).bytes_array(bodies).texts(plain).i64s({}), [&](const Rows& r) {
        CHECK(r.text(0, 0) == "a");
        CHECK(r.is_null(0, 1));
        CHECK(r.text(0, 2).empty());
        CHECK(r.boolean(0, 3));
        CHECK(r.boolean(0, 4));
        CHECK(r.text(0, 5) == plain[0]);
        CHECK(r.integer(0, 6) == 0);
      });
}

TEST_CASE("affected() counts what a statement changed") {
  Server on;
  test::must(on.session.exec_script("CREATE TABLE t (a int)"));
  CHECK(test::must(on.session.exec("INSERT INTO t SELECT generate_series(1, 7)")).affected() == 7);
  CHECK(test::must(on.session.exec("UPDATE t SET a = a WHERE a > 5")).affected() == 2);
  CHECK(test::must(on.session.exec("SELECT a FROM t")).affected() == 7);
}

TEST_CASE("what memory() returned keeps the views alive") {
  Server on;
  std::shared_ptr<const void> memory;
  std::string_view view;
  {
    const auto rows = test::must(on.session.exec("SELECT repeat('x', 1000)"));
    memory = rows.memory();
    view = rows.text(0, 0);
  }
  CHECK(view == std::string(1000, 'x'));
}
}  // namespace outbox
