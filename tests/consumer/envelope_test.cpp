#include "consumer/core/envelope.hpp"

#include <doctest/doctest.h>

#include "letters.hpp"
#include "outbox/foreign_id.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

using Headers = std::vector<std::pair<std::string, std::optional<std::string>>>;

std::variant<Message::Identity, Malformed> read(const Letter& letter) {
  return read_envelope(letter.record());
}

// The Letter must outlive the views of what was read, so each case keeps its own.
std::string id_of(const Headers& headers) {
  const Letter letter{.headers = headers};
  const auto result = read(letter);
  if (const auto* wrong = std::get_if<Malformed>(&result)) return "malformed: " + wrong->reason;
  return to_string(std::get<Message::Identity>(result).msg_id);
}
bool malformed(const Headers& headers) {
  return id_of(headers).starts_with("malformed: ");
}

}  // namespace

TEST_CASE("the plain preset is read with its informative headers") {
  const Letter letter{.headers = {{"outbox-id", v7(1)},
                                  {"outbox-seq", "42"},
                                  {"outbox-created-at", "2026-11-29T16:05:00.123456Z"},
                                  {"outbox-source", "payments"}}};
  const auto identity = std::get<Message::Identity>(read(letter));
  CHECK(to_string(identity.msg_id) == v7(1));
  CHECK(identity.seq == 42);
  CHECK(identity.source == "payments");
  using namespace std::chrono;
  CHECK(identity.created_at == sys_days{2026y / 11 / 29} + 16h + 5min + 123456us);
}

TEST_CASE("cloudevents and debezium headers are read") {
  const Letter cloud{
      .headers = {{"ce_id", v7(2)}, {"ce_source", "payments"}, {"ce_time", "2026-11-29T16:05:00Z"}}};
  const auto identity = std::get<Message::Identity>(read(cloud));
  CHECK(to_string(identity.msg_id) == v7(2));
  CHECK(identity.source == "payments");
  CHECK(identity.created_at.has_value());
  CHECK(id_of({{"id", v7(3)}}) == v7(3));
}

TEST_CASE("the relay's own header decides before ce_id, and that before id") {
  CHECK(id_of({{"id", v7(3)}, {"ce_id", v7(2)}, {"outbox-id", v7(1)}}) == v7(1));
  CHECK(id_of({{"id", v7(3)}, {"ce_id", v7(2)}}) == v7(2));
  CHECK(malformed({{"outbox-id", "nonsense"}, {"ce_id", v7(2)}}));
}

TEST_CASE("a foreign text id becomes a uuid, within its source for cloudevents, else within its topic") {
  const Letter debits{.topic = "debits", .headers = {{"id", "1"}}};
  const Letter credits{.topic = "credits", .headers = {{"id", "1"}}};
  const auto id = [](const Letter& letter) { return std::get<Message::Identity>(read(letter)).msg_id; };
  CHECK(id(debits) == foreign_id("debits", "1"));
  CHECK(id(credits) != id(debits));
  const auto named = [](const Letter& letter) {
    return std::get<Message::Identity>(read_envelope(letter.record(), [](const Record&) { return "1"; }))
        .msg_id;
  };
  CHECK(named(debits) == id(debits));
  CHECK(named(credits) == id(credits));
  CHECK(id_of({{"ce_id", "4711"}, {"ce_source", "/orders"}}) == to_string(foreign_id("/orders", "4711")));
  CHECK(id_of({{"ce_id", "4711"}, {"ce_source", "/refunds"}}) != to_string(foreign_id("/orders", "4711")));
}

TEST_CASE("a record without a usable identity is malformed, and says why") {
  CHECK(id_of({}) == "malformed: no header names it: none of outbox-id, ce_id, id");
  CHECK(malformed({{"outbox-id", std::nullopt}}));
  CHECK(malformed({{"outbox-id", ""}}));
  CHECK(malformed({{"outbox-id", "order-4711"}}));
  CHECK(malformed({{"outbox-id", "{" + v7(1) + "}"}}));
  CHECK(malformed({{"id", std::nullopt}}));
  CHECK(malformed({{"id", ""}}));
  CHECK(malformed({{"id", std::string("\xff\xfe", 2)}}));
  CHECK(malformed({{"id", std::string("a\0b", 3)}}));
  CHECK(malformed({{"ce_id", "1"}, {"ce_source", "\xc3\x28"}}));
  CHECK(malformed({{"id", std::string(1025, 'x')}}));
  CHECK_FALSE(malformed({{"id", std::string(1024, 'x')}}));
  CHECK(malformed({{"outbox-ID", v7(1)}}));
}

TEST_CASE("an identity that is there twice is one identity, or malformed where the two differ") {
  CHECK(id_of({{"outbox-id", v7(1)}, {"x", "y"}, {"outbox-id", v7(1)}}) == v7(1));
  CHECK(malformed({{"outbox-id", v7(1)}, {"outbox-id", v7(2)}}));
  CHECK(malformed({{"outbox-id", v7(1)}, {"outbox-id", std::nullopt}}));
}

TEST_CASE("an informative header that can't be read is left out and spoils nothing") {
  for (const auto* time :
       {"", "yesterday", "2026-13-29T16:05:00Z", "2026-11-29T16:05:00+01:00", "2026-11-29 16:05:00Z",
        "2026-11-29T16:05:00.Z", "2026-11-29T16:05:00.1234567Z", "2026-02-30T00:00:00Z"}) {
    const Letter letter{.headers = {{"outbox-id", v7(1)}, {"outbox-created-at", time}, {"outbox-seq", "1x"}}};
    const auto identity = std::get<Message::Identity>(read(letter));
    CHECK_FALSE(identity.created_at.has_value());
    CHECK_FALSE(identity.seq.has_value());
  }
}
