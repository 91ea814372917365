#include "relay/core/lanes/ledger.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace outbox;
using namespace outbox::relay;

namespace {

Uuid some_ledger() {
  return *parse_uuid("01890a5d-ac96-774b-bcce-b302099a8057");
}

Uuid a_message(std::uint8_t byte) {
  Uuid id;
  id.bytes.fill(byte);
  return id;
}

LedgerEntry some_entry() {
  return {some_ledger(),
          {3, LaneId{63}},
          {{RowId{7}, a_message(1), 0, Partition{2}, Offset{1000}},
           {RowId{5}, a_message(2), 1, Partition{0}, Offset{0}},
           {RowId{std::numeric_limits<std::int64_t>::max()}, a_message(255),
            std::numeric_limits<std::int32_t>::max(), Partition{std::numeric_limits<std::int32_t>::max()},
            Offset{std::numeric_limits<std::int64_t>::max()}},
           {RowId{0}, {}, 0, Partition{0}, Offset{0}}}};
}

std::string refusal(std::string_view value) {
  const auto entry = decode_ledger_entry(value);
  return entry ? "" : entry.error().message;
}

}  // namespace

TEST_CASE("an entry of the ledger reads back as it was written, at the edges of every number, and empty") {
  const auto back = decode_ledger_entry(encode_ledger_entry(some_entry()));
  REQUIRE(back.has_value());
  CHECK(*back == some_entry());
  const LedgerEntry empty{some_ledger(), {1, LaneId{0}}, {}};
  CHECK(decode_ledger_entry(encode_ledger_entry(empty)).value() == empty);
}

TEST_CASE("every entry that is cut short, longer, or of another version is refused, never read in part") {
  const std::string whole = encode_ledger_entry(some_entry());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK(refusal(std::string_view{whole}.substr(0, length)) != "");
  }
  CHECK(refusal(whole + '\0') == "a record of the ledger cannot be read: it is longer than it says");
  std::string other = whole;
  other[0] = 3;
  CHECK(refusal(other) == "a record of the ledger cannot be read: its version is 3");
}

TEST_CASE("a ledger that names rows by ids alone is refused, with the reason and what to do") {
  std::string old = encode_ledger_entry(some_entry());
  old[0] = 1;
  const auto entry = decode_ledger_entry(old);
  REQUIRE_FALSE(entry.has_value());
  CHECK(entry.error().disposition == Disposition::fatal);
  CHECK(entry.error().text().find("names rows by ids alone") != std::string::npos);
  CHECK(entry.error().text().find("delete the ledger's topic") != std::string::npos);
}

TEST_CASE("an entry that claims more rows than it can hold costs no memory") {
  std::string claims = encode_ledger_entry({some_ledger(), {1, LaneId{0}}, {}});
  claims.pop_back();
  claims += "\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
  CHECK(refusal(claims) == "a record of the ledger cannot be read: it is cut short");
}

TEST_CASE("rows next to each other take a few bytes each beside their msg_ids") {
  LedgerEntry entry{some_ledger(), {1, LaneId{5}}, {}};
  for (std::int64_t n = 0; n < 5000; ++n)
    entry.rows.push_back({RowId{1'000'000'000 + 8 * n}, a_message(7), 0,
                          Partition{static_cast<std::int32_t>(n % 12)}, Offset{77'000'000 + n / 12}});
  CHECK(encode_ledger_entry(entry).size() < 5000 * (16 + 5));
}

TEST_CASE("a record of as many rows as a transaction has fits a message, whatever their numbers are") {
  LedgerEntry entry{some_ledger(), {std::numeric_limits<std::int32_t>::max(), LaneId{63}}, {}};
  for (std::int32_t n = 0; n < ledger_rows_max; ++n) {
    const bool high = n % 2 == 0;  // each difference as long as can be
    entry.rows.push_back({RowId{high ? std::numeric_limits<std::int64_t>::max() : 0}, a_message(9),
                          std::numeric_limits<std::int32_t>::max(),
                          Partition{high ? std::numeric_limits<std::int32_t>::max() : 0},
                          Offset{high ? std::numeric_limits<std::int64_t>::max() : 0}});
  }
  CHECK(encode_ledger_entry(entry).size() < 1'000'000 - 1000);
}

TEST_CASE("lane and generation of lanes have a transactional id and a key of their own") {
  CHECK(transactional_id("payments", some_ledger(), {2, LaneId{7}}) ==
        "outboxd-payments-01890a5d-ac96-774b-bcce-b302099a8057-2-7");
  CHECK(ledger_key({2, LaneId{7}}) == "2/7");
  CHECK(ledger_topic_of("payments") == "outboxd-ledger-payments");
}
