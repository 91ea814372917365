#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "pg/identifier.hpp"

namespace outbox::pg {
namespace {

std::string refusal(std::string_view text) {
  const auto name = parse_table_name(text);
  return name ? "" : name.error().message;
}

}  // namespace

TEST_CASE("whatever a name contains, quoted and parsed by the same rules it is the same name") {
  CHECK(rc::check([] {
    const auto characters = rc::gen::elementOf(std::string("abcXYZ019_$\"\".. '\\;-\t\xc3\xa9"));
    const auto name = rc::gen::suchThat(rc::gen::container<std::string>(characters),
                                        [](const std::string& s) { return !s.empty() && s.size() <= 63; });
    const TableName table{*name, *name};
    RC_ASSERT(parse_table_name(table.quoted()).value() == table);
    RC_ASSERT(table.quoted() == table.quoted_schema() + "." + quote_identifier(table.table).value());
  }));
}

TEST_CASE("table names are read as PostgreSQL reads them") {
  CHECK(parse_table_name("outbox_msg").value() == TableName{"public", "outbox_msg"});
  CHECK(parse_table_name("Pay.OutBox").value() == TableName{"pay", "outbox"});
  CHECK(parse_table_name("\"My.Schema\".\"Out\"\"box\"").value() == TableName{"My.Schema", "Out\"box"});
  CHECK(parse_table_name("_a$1.\xc3\x84"
                         "B")
            .value() == TableName{"_a$1",
                                  "\xc3\x84"
                                  "b"});
}

TEST_CASE("what is no table name is refused with the reason and the text") {
  CHECK(refusal("a.b.c") == "table name 'a.b.c': more than two parts");
  CHECK(refusal("\"open") == "table name '\"open': a double quote is not closed");
  for (const char* text :
       {"", ".", "a.", ".b", "\"\"", "a b", "a-b", "1a", "a;drop table b", "\"a\"b", "a.\"", " a"}) {
    CAPTURE(text);
    CHECK(!refusal(text).empty());
  }
  CHECK(!refusal(std::string_view("\"a\0b\"", 5)).empty());
  CHECK(refusal(std::string(63, 'a')).empty());
  CHECK(!refusal(std::string(64, 'a')).empty());
}

TEST_CASE("a single name is read by the same rules, and has one part") {
  CHECK(parse_name("Shelf").value() == "shelf");
  CHECK(parse_name("\"My.Shelf\"").value() == "My.Shelf");
  CHECK(parse_name("a.b").error().message == "name 'a.b': more than one part");
  for (const char* text : {"", "a b", "\"open", "a-b", "a."}) {
    CAPTURE(text);
    CHECK_FALSE(parse_name(text));
  }
}

TEST_CASE("quotes are doubled, so that no name ends its own quotation") {
  CHECK(quote_identifier("a\"; DROP TABLE b; --").value() == "\"a\"\"; DROP TABLE b; --\"");
  CHECK(!quote_identifier(""));
  CHECK(!quote_identifier(std::string_view("a\0", 2)));
}

TEST_CASE("a template's names are replaced once, also where a value looks like a name") {
  CHECK(fill_template("SELECT {{a}} FROM {{table}} WHERE {{a}}", {{"a", "{{table}}"}, {"table", "t"}}) ==
        "SELECT {{table}} FROM t WHERE {{table}}");
  CHECK(fill_template("no names", {}) == "no names");
}
}  // namespace outbox::pg
