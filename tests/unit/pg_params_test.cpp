#include <doctest/doctest.h>
#include <libpq-fe.h>
#include <rapidcheck.h>

#include "pg/params.hpp"
#include "pg/rows.hpp"

namespace outbox::pg {
namespace {

/// A result of one row whose columns are the parameters' own bytes: what a server would give back for SELECT
/// $1, $2, ...
Rows echo(const Params& params) {
  PGresult* result = PQmakeEmptyPGresult(nullptr, PGRES_TUPLES_OK);
  std::vector<PGresAttDesc> columns;
  char name[] = "c";
  for (int i = 0; i < params.count(); ++i) {
    columns.push_back({name, 0, 0, params.formats()[i], params.types()[i], -1, -1});
  }
  PQsetResultAttrs(result, params.count(), columns.data());
  for (int i = 0; i < params.count(); ++i) {
    const char* value = params.values()[i];
    // libpq takes it as char*, and copies.
    PQsetvalue(result, 0, i, const_cast<char*>(value), value ? params.lengths()[i] : -1);
  }
  return Rows{result};
}

std::uint32_t word(std::string_view bytes, std::size_t at) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < 4; ++i) out = out << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return out;
}

}  // namespace

TEST_CASE("every scalar parameter reads back as itself") {
  CHECK(rc::check([](std::int16_t a, std::int32_t b, std::int64_t c, bool d, const std::string& e,
                     const std::array<std::uint8_t, 16>& f, std::int32_t g) {
    const WallTime time{std::chrono::seconds{g}};
    const Rows r =
        echo(Params{}.i16(a).i32(b).i64(c).boolean(d).text(e).uuid(Uuid{f}).timestamptz(time).null());
    RC_ASSERT(r.integer(0, 0) == a);
    RC_ASSERT(r.integer(0, 1) == b);
    RC_ASSERT(r.integer(0, 2) == c);
    RC_ASSERT(r.boolean(0, 3) == d);
    RC_ASSERT(r.text(0, 4) == e);
    RC_ASSERT(r.uuid(0, 5) == Uuid{f});
    RC_ASSERT(r.timestamptz(0, 6) == time);
    RC_ASSERT(r.is_null(0, 7));
  }));
}

TEST_CASE("values() points at each value, whatever came before and after it") {
  CHECK(rc::check([](const std::vector<std::string>& texts) {
    Params params;
    for (const std::string& t : texts) params.text(t).null();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const char* value = params.values()[2 * i];
      RC_ASSERT(std::string_view(value, static_cast<std::size_t>(params.lengths()[2 * i])) == texts[i]);
      RC_ASSERT(params.values()[2 * i + 1] == nullptr);
    }
    params.clear();
    RC_ASSERT(params.count() == 0);
  }));
}

TEST_CASE("an array has a header, then a length and the bytes of each element") {
  const std::vector<std::optional<std::string_view>> texts{"ab", std::nullopt, ""};
  const Params params = Params{}.texts(texts);
  const std::string_view bytes(params.values()[0], static_cast<std::size_t>(params.lengths()[0]));
  CHECK(params.types()[0] == 1009);
  CHECK(bytes.size() == 20 + (4 + 2) + 4 + 4);
  CHECK(word(bytes, 0) == 1);   // dimensions
  CHECK(word(bytes, 4) == 1);   // has nulls
  CHECK(word(bytes, 8) == 25);  // text
  CHECK(word(bytes, 12) == 3);
  CHECK(word(bytes, 16) == 1);  // lower bound
  CHECK(word(bytes, 20) == 2);
  CHECK(bytes.substr(24, 2) == "ab");
  CHECK(word(bytes, 26) == 0xffff'ffff);
  CHECK(word(bytes, 30) == 0);
}

TEST_CASE("an empty array has no dimension") {
  const Params params = Params{}.i64s({});
  CHECK(params.lengths()[0] == 12);
}

TEST_CASE("an untyped value goes as text, unless a NUL would cut it") {
  const Params params = Params{}.untyped("{}").untyped(std::string_view("a\0b", 3)).untyped(std::nullopt);
  CHECK(params.types()[0] == 0);
  CHECK(params.formats()[0] == 0);
  CHECK(params.formats()[1] == 1);
  CHECK(params.lengths()[1] == 3);
  CHECK(params.values()[2] == nullptr);
}
}  // namespace outbox::pg
