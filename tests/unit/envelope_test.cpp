#include "relay/core/message/envelope.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using namespace outbox;
using namespace outbox::relay;

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr WallTime at{Micros{1'796'310'300'123'456}};  // 2026-12-03T15:05:00.123456Z
const Uuid id = *parse_uuid("0192f0c1-2233-7abc-8def-00112233aabb");
const std::string id_text = to_string(id);

Message message_with(std::span<const Header> headers) {
  Message message;
  message.id = RowId{42};
  message.msg_id = id;
  message.topic = "payment.created";
  message.key = "ACC-1";
  message.body = "{}";
  message.created_at = at;
  message.headers = headers;
  return message;
}

Pairs headers_of(Envelope& envelope, const Message& message) {
  const auto headers = envelope.headers(message);
  REQUIRE(headers.has_value());
  Pairs pairs;
  for (const auto& header : *headers) {
    pairs.emplace_back(header.name, header.value ? std::string{*header.value} : std::string{"(null)"});
  }
  return pairs;
}

const Pairs own{{"outbox-id", id_text},
                {"outbox-seq", "42"},
                {"outbox-created-at", "2026-12-03T15:05:00.123456Z"},
                {"outbox-source", "payments"}};

Pairs own_and(const Pairs& more) {
  auto all = own;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Envelope make(HeaderPreset preset) {
  return Envelope{{.preset = preset, .source = "payments"}};
}

}  // namespace

TEST_CASE("plain: the relay's four headers, then the row's own, untouched and in order") {
  const std::vector<Header> headers{
      {"traceparent", "00-a-b-01"}, {"b\x01\n", "\xc3\xa9"}, {"", ""}, {"gone", std::nullopt}};
  auto envelope = make(HeaderPreset::plain);
  CHECK(headers_of(envelope, message_with(headers)) ==
        own_and({{"traceparent", "00-a-b-01"}, {"b\x01\n", "\xc3\xa9"}, {"", ""}, {"gone", "(null)"}}));
}

TEST_CASE("a scheduled row says when it was due, since its number is lower than its place in the order") {
  auto envelope = make(HeaderPreset::plain);
  Message message = message_with({});
  const auto unscheduled = envelope.encoded_size(message);
  message.available_at = at + std::chrono::hours{1};
  CHECK(headers_of(envelope, message) == own_and({{"outbox-due-at", "2026-12-03T16:05:00.123456Z"}}));
  CHECK(envelope.encoded_size(message) == unscheduled + 1 + 13 + 1 + 27);
  message.available_at.reset();
  CHECK(headers_of(envelope, message) == own);
}

TEST_CASE("debezium: the event router's id header besides") {
  auto envelope = make(HeaderPreset::debezium);
  CHECK(headers_of(envelope, message_with({})) == own_and({{"id", id_text}}));
}

TEST_CASE("cloudevents: binary mode, typed by the topic unless the row says otherwise") {
  auto envelope = make(HeaderPreset::cloudevents);
  const Pairs identity{{"ce_specversion", "1.0"},
                       {"ce_id", id_text},
                       {"ce_source", "payments"},
                       {"ce_time", "2026-12-03T15:05:00.123456Z"}};
  auto expected = own_and(identity);
  auto by_default = expected;
  by_default.insert(by_default.end(), {{"ce_type", "payment.created"}, {"content-type", "application/json"}});
  CHECK(headers_of(envelope, message_with({})) == by_default);

  const std::vector<Header> headers{{"CE_Type", "com.example.paid"}, {"Content-Type", "text/plain"}};
  expected.insert(expected.end(), {{"CE_Type", "com.example.paid"}, {"Content-Type", "text/plain"}});
  CHECK(headers_of(envelope, message_with(headers)) == expected);
}

TEST_CASE("cloudevents: a tombstone has no content type") {
  auto envelope = make(HeaderPreset::cloudevents);
  auto message = message_with({});
  message.body = std::nullopt;
  CHECK(headers_of(envelope, message).back() ==
        std::pair<std::string, std::string>{"ce_type", "payment.created"});
}

TEST_CASE("a row's header that takes a name of the relay is refused by name, whatever its case") {
  struct Case {
    HeaderPreset preset;
    const char* name;
    bool refused;
  };
  using enum HeaderPreset;
  const std::vector<Case> cases{
      {plain, "outbox-id", true},
      {plain, "OUTBOX-Id", true},
      {plain, "Outbox-anything", true},
      {plain, "outbox-", true},
      {plain, "outbox", false},
      {plain, "my-outbox-id", false},
      {plain, "id", false},
      {plain, "ce_id", false},
      {debezium, "id", true},
      {debezium, "ID", true},
      {debezium, "ide", false},
      {debezium, "outbox-seq", true},
      {cloudevents, "ce_id", true},
      {cloudevents, "CE_ID", true},
      {cloudevents, "ce_source", true},
      {cloudevents, "ce_time", true},
      {cloudevents, "ce_specversion", true},
      {cloudevents, "id", false},
      {cloudevents, "ce_subject", false},
      {cloudevents, "ce_type", false},
      {cloudevents, "outbox-id", true},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    auto envelope = make(c.preset);
    const std::vector<Header> headers{{"fine", "1"}, {c.name, "forged"}};
    const auto answer = envelope.headers(message_with(headers));
    REQUIRE(answer.has_value() == !c.refused);
    if (!c.refused) continue;
    CHECK(answer.error().disposition == Disposition::quarantine);
    CHECK(answer.error().message.find(c.name) != std::string::npos);
  }
}

TEST_CASE("one envelope writes each message again: times within one second, later ones, earlier ones") {
  auto envelope = make(HeaderPreset::plain);
  auto message = message_with({});
  const auto time_of = [&](std::int64_t shift_us) {
    message.created_at = at + Micros{shift_us};
    message.id.value = -shift_us;
    const auto headers = headers_of(envelope, message);
    CHECK(headers[1].second == std::to_string(-shift_us));
    return headers[2].second;
  };
  CHECK(time_of(0) == "2026-12-03T15:05:00.123456Z");
  CHECK(time_of(1) == "2026-12-03T15:05:00.123457Z");
  CHECK(time_of(876'543) == "2026-12-03T15:05:00.999999Z");
  CHECK(time_of(876'544) == "2026-12-03T15:05:01.000000Z");
  CHECK(time_of(-123'457) == "2026-12-03T15:04:59.999999Z");
  CHECK(time_of(-1'796'310'300'123'457) == "1969-12-31T23:59:59.999999Z");
}

namespace {

std::size_t varint(std::size_t length) {
  std::size_t zigzag = length * 2, size = 1;
  while (zigzag >= 128) zigzag /= 128, ++size;
  return size;
}

// The format's own arithmetic, field by field, as a broker sees a batch of one record.
std::int64_t true_size(Envelope& envelope, const Message& message) {
  std::size_t body = 1 + 1 + 1;  // attributes, timestamp delta 0, offset delta 0
  const auto field = [&](const std::optional<std::string_view>& text) {
    body += text ? varint(text->size()) + text->size() : 1;
  };
  field(message.key);
  field(message.body);
  const auto headers = envelope.headers(message);
  REQUIRE(headers.has_value());
  body += varint(headers->size());
  for (const auto& header : *headers) {
    field(header.name);
    field(header.value);
  }
  return static_cast<std::int64_t>(61 + varint(body) + body);
}

}  // namespace

TEST_CASE("the encoded size is never below the true one, and hardly above it") {
  const std::string long_text(100'000, 'x');
  for (const auto preset : {HeaderPreset::plain, HeaderPreset::cloudevents, HeaderPreset::debezium}) {
    auto envelope = make(preset);
    for (const std::size_t length : {0U, 1U, 63U, 64U, 65U, 8191U, 8192U, 8193U, 100'000U}) {
      const std::string_view text{long_text.data(), length};
      const std::vector<Header> headers{{text, text}, {"null", std::nullopt}, {"empty", ""}};
      auto message = message_with(headers);
      for (const auto& [key, body] :
           {std::pair<std::optional<std::string_view>, std::optional<std::string_view>>{std::nullopt,
                                                                                        std::nullopt},
            {"", ""},
            {text, text}}) {
        message.key = key;
        message.body = body;
        const auto bound = envelope.encoded_size(message);
        const auto size = true_size(envelope, message);
        CHECK(bound >= size);
        CHECK(bound <= size + 40 + (preset == HeaderPreset::cloudevents ? 30 : 0));
      }
    }
  }
}

TEST_CASE("tracestate is stamped with pipeline and row only where it is asked for and a trace is there") {
  const std::vector<Header> traced{
      {"traceparent", "00-a-b-01"}, {"tracestate", "other=1, outboxd=old:1 ,x=2"}, {"z", "1"}};
  const auto stamping = [](std::span<const Header> headers) {
    Envelope envelope{{.tracestate = Tracestate::stamp, .source = "payments"}};
    return headers_of(envelope, message_with(headers));
  };
  auto passing = make(HeaderPreset::plain);
  CHECK(headers_of(passing, message_with(traced)) ==
        own_and({{"traceparent", "00-a-b-01"}, {"tracestate", "other=1, outboxd=old:1 ,x=2"}, {"z", "1"}}));
  CHECK(
      stamping(traced) ==
      own_and({{"traceparent", "00-a-b-01"}, {"z", "1"}, {"tracestate", "outboxd=payments:42,other=1,x=2"}}));
  const std::vector<Header> bare{{"traceparent", "00-a-b-01"}};
  CHECK(stamping(bare) == own_and({{"traceparent", "00-a-b-01"}, {"tracestate", "outboxd=payments:42"}}));
  const std::vector<Header> untraced{{"tracestate", "other=1"}};
  CHECK(stamping(untraced) == own_and({{"tracestate", "other=1"}}));
}

TEST_CASE("a stamped tracestate has 32 entries at the most, and its size is foreseen") {
  std::string many;
  for (int i = 0; i < 40; ++i) many += (many.empty() ? "k" : ",k") + std::to_string(i) + "=v";
  const std::vector<Header> traced{{"traceparent", "00-a-b-01"}, {"tracestate", many}};
  Envelope envelope{{.tracestate = Tracestate::stamp, .source = "payments"}};
  const auto headers = headers_of(envelope, message_with(traced));
  CHECK(std::ranges::count(headers.back().second, ',') == 31);
  auto passing = make(HeaderPreset::plain);
  const std::vector<Header> bare{{"traceparent", "00-a-b-01"}};
  const Message message = message_with(bare);
  const auto stamp = headers_of(envelope, message).back();
  CHECK(envelope.encoded_size(message) >=
        passing.encoded_size(message) + static_cast<std::int64_t>(stamp.first.size() + stamp.second.size()) +
            2);
}
