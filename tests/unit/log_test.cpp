#include "relay/log/log.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <string>
#include <vector>

#include "base/strong_id.hpp"
#include "relay/log/line.hpp"

using namespace outbox::log;
using namespace std::chrono_literals;

namespace {

using Fields = std::vector<Field>;
using TestId = outbox::StrongId<struct TestIdTag, std::int16_t>;

nlohmann::json parsed(const Fields& fields) {
  return nlohmann::json::parse("{" + json_members("event", fields) + "}");
}

}  // namespace

TEST_CASE("a line reads event name=value, with every kind of value") {
  const std::string topic = "payment.created";
  const Fields fields{{"lane", TestId{3}}, {"epoch", 7},    {"rows", std::size_t{5}}, {"rate", 12.5},
                      {"up", true},        {"wait", 250ms}, {"took", 1500us},         {"topic", topic}};
  CHECK(text_line("lease_taken", fields) ==
        "lease_taken lane=3 epoch=7 rows=5 rate=12.5 up=true wait=250ms took=1500us topic=payment.created");
  CHECK(
      json_members("lease_taken", fields) ==
      R"("event":"lease_taken","lane":3,"epoch":7,"rows":5,"rate":12.5,"up":true,"wait_ms":250,"took_ms":1.5,"topic":"payment.created")");
}

TEST_CASE("text that holds a space, a quote, an equals sign or nothing is quoted") {
  CHECK(
      text_line(
          "e", Fields{{"a", "two words"}, {"b", ""}, {"c", "x=y"}, {"d", R"(say "no")"}, {"f", R"(C:\x)"}}) ==
      R"(e a="two words" b="" c="x=y" d="say \"no\"" f="C:\\x")");
}

TEST_CASE("text from outside can neither start a line nor move the cursor") {
  const std::string hostile =
      "a\nlease_taken lane=0\r\t\x1b[2J\x7f\xc2\x9b"
      "31m\xe2\x80\xae";
  CHECK(text_line("e", Fields{{"error", hostile}}) ==
        R"(e error="a\nlease_taken lane=0\r\t\u{1b}[2J\u{7f}\u{9b}31m\u{202e}")");
  const std::string json = json_members("e", Fields{{"error", hostile}});
  for (const char c : json) CHECK(static_cast<unsigned char>(c) >= 0x20);
  CHECK(json.find("\xc2\x9b") == std::string::npos);
  CHECK(parsed({{"error", hostile}})["error"] == hostile);
}

TEST_CASE("a NUL inside a text is escaped, not an end") {
  using namespace std::string_view_literals;
  CHECK(text_line("e", Fields{{"a", "x\0y"sv}}) == R"(e a="x\u{0}y")");
  CHECK(parsed({{"a", "x\0y"sv}})["a"] == "x\0y"sv);
}

TEST_CASE("bytes that are not UTF-8 still make a readable line and valid JSON") {
  for (const char* bad : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xe2\x82", "a\x80z", "\xf5\x80\x80\x80"}) {
    CHECK_MESSAGE(parsed({{"error", bad}})["error"].is_string(), text_line("e", Fields{{"error", bad}}));
  }
  CHECK(text_line("e", Fields{{"error", "\xff\xe2\x82"}}) == R"(e error="\xff\xe2\x82")");
  CHECK(text_line("e", Fields{{"name", "Žofie"}}) == "e name=Žofie");
}

TEST_CASE("a value without end is cut at a whole character") {
  std::string endless;
  while (endless.size() < 1'000'000) endless += "é";
  const std::string line = text_line("e", Fields{{"error", "x" + endless}});
  CHECK(line.size() < value_bytes_max + 20);
  CHECK(line.ends_with("é…"));
}

TEST_CASE("what a number cannot say in JSON is null") {
  CHECK(parsed({{"rate", std::numeric_limits<double>::infinity()}})["rate"].is_null());
}

TEST_CASE("a logger writes from its level upwards, with the fields bound to it") {
  std::vector<std::string> lines;
  const Logger logger(Level::info, Format::text,
                      [&](Level, const std::string& line) { lines.push_back(line); });
  const Logger payments = logger.with("pipeline", "payments");
  payments.debug("claim_empty");
  payments.info("lease_taken", {{"lanes", 8}});
  logger.warn("slow");
  CHECK(lines == std::vector<std::string>{"lease_taken pipeline=payments lanes=8", "slow"});
}

TEST_CASE("a default-made logger says nothing, and so do its children") {
  const Logger silent;
  silent.with("pipeline", "payments").error("lost", {{"why", "test"}});
  CHECK_FALSE(silent.writes(Level::error));
}

TEST_CASE("a writer that throws loses its line, not the relay") {
  const Logger logger(Level::info, Format::json, [](Level, const std::string&) { throw 1; });
  logger.info("still_here");
}
