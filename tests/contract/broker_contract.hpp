#pragma once
// What every Broker keeps to, as test cases over a fixture, so that a stand-in cannot drift from the real
// thing:
//
//   TEST_CASE_TEMPLATE_INVOKE(broker_contract_order, MyFixture); … or all of them by
//   OUTBOX_BROKER_CONTRACT(MyFixture)
//
// A fixture offers
//   Broker& broker();                            made, not started
//   bool until(std::function<bool()>);           runs the loop until it holds; false: the deadline has passed
//   void run_a_while();                          gives whatever is left a chance to happen
//   std::string topic(int partitions);           a fresh topic of that many partitions
//   std::string missing_topic();                 a name that no topic has
//   std::vector<StoredRecord> stored(topic);     what the cluster holds of it, by partition and offset
//   static constexpr bool topics_make_themselves;   a cluster without "no such topic"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "relay/ports/broker.hpp"

namespace outbox::test {

using Text = std::optional<std::string>;
using TextHeaders = std::vector<std::pair<std::string, Text>>;

struct StoredRecord {
  Text key;
  Text body;
  TextHeaders headers;  ///< perhaps more than the row's own, before them
  std::int32_t partition = 0;
  std::int64_t offset = 0;
};

/// A message and the memory that its views point into.
class OwnedMessage {
 public:
  OwnedMessage(std::string topic, Text key, Text body, TextHeaders headers = {})
      : topic_(std::move(topic)), key_(std::move(key)), body_(std::move(body)), headers_(std::move(headers)) {
    for (const auto& [name, value] : headers_) views_.push_back({name, value});
    static std::int64_t next = 0;
    message_.id = relay::RowId{++next};
    message_.msg_id.bytes[15] = static_cast<std::uint8_t>(next);
    message_.topic = topic_;
    message_.key = key_;
    message_.body = body_;
    message_.headers = views_;
  }
  OwnedMessage(const OwnedMessage&) = delete;
  OwnedMessage& operator=(const OwnedMessage&) = delete;
  [[nodiscard]] const relay::Message& view() const { return message_; }
  [[nodiscard]] const TextHeaders& headers() const { return headers_; }

 private:
  std::string topic_;
  Text key_;
  Text body_;
  TextHeaders headers_;
  std::vector<relay::Header> views_;
  relay::Message message_;
};

/// Starts the fixture's broker, publishes, and writes down whatever comes back.
template <class Fixture>
class BrokerRun {
 public:
  Fixture fixture;
  std::vector<relay::Delivery> deliveries;
  std::map<relay::Token, int> reports;
  std::vector<Error> fatals;
  std::vector<relay::LinkState> links;
  bool inside = false;  // a call: no callback may come

  template <class... Args>
  explicit BrokerRun(Args&&... args) : fixture(std::forward<Args>(args)...) {
    fixture.broker().start(
        {.on_delivered =
             [this](std::span<const relay::Delivery> batch) {
               CHECK(!inside);
               for (const auto& delivery : batch) {
                 deliveries.push_back(delivery);
                 ++reports[delivery.token];
               }
             },
         .on_link = [this](relay::LinkState state, const std::string&) { links.push_back(state); },
         .on_fatal = [this](const Error& error) { fatals.push_back(error); }});
  }

  Result<relay::Accepted> try_publish(const OwnedMessage& message, relay::Token token,
                                      std::int32_t partition = 0) {
    inside = true;
    const auto accepted = fixture.broker().publish({&message.view(), relay::Partition{partition}, token});
    inside = false;
    return accepted;
  }
  void publish(const OwnedMessage& message, relay::Token token, std::int32_t partition = 0) {
    const auto accepted = try_publish(message, token, partition);
    REQUIRE(accepted.has_value());
    REQUIRE(*accepted == relay::Accepted::queued);
  }
  void await_reports(std::size_t count) {
    REQUIRE(fixture.until([&] { return deliveries.size() >= count; }));
  }
  Result<relay::TopicFacts> try_look_up(const std::string& topic) {
    std::optional<Result<relay::TopicFacts>> answer;
    inside = true;
    fixture.broker().look_up(topic, [&](Result<relay::TopicFacts> facts) {
      CHECK(!inside);
      CHECK(!answer);
      answer = std::move(facts);
    });
    inside = false;
    REQUIRE(fixture.until([&] { return answer.has_value(); }));
    return std::move(*answer);
  }
  relay::TopicFacts look_up(const std::string& topic) {
    const auto facts = try_look_up(topic);
    REQUIRE(facts.has_value());
    return *facts;
  }
  /// Every token from 0 to count - 1 was reported exactly once.
  void check_reported_once(std::size_t count) {
    CHECK(deliveries.size() == count);
    CHECK(reports.size() == count);
    for (const auto& [token, times] : reports) CHECK(times == 1);
  }
};

using Messages = std::vector<std::unique_ptr<OwnedMessage>>;

inline Messages numbered(const std::string& topic, std::size_t count) {
  Messages messages;
  for (std::size_t i = 0; i < count; ++i) {
    messages.push_back(std::make_unique<OwnedMessage>(topic, "k" + std::to_string(i % 7), std::to_string(i)));
  }
  return messages;
}

TEST_CASE_TEMPLATE_DEFINE(
    "messages of a partition are delivered in the order of publishing, at rising offsets", Fixture,
    broker_contract_order) {
  BrokerRun<Fixture> run;
  const auto topic = run.fixture.topic(3);
  const auto messages = numbered(topic, 300);
  for (std::size_t i = 0; i < messages.size(); ++i)
    run.publish(*messages[i], i, static_cast<std::int32_t>(i % 3));
  run.await_reports(300);
  run.check_reported_once(300);
  std::map<std::int32_t, relay::Delivery> last;
  for (const auto& delivery : run.deliveries) {
    REQUIRE(!delivery.refusal);
    CHECK(delivery.partition.value == static_cast<std::int32_t>(delivery.token % 3));
    const auto before = last.find(delivery.partition.value);
    if (before != last.end()) {
      CHECK(before->second.token < delivery.token);
      CHECK(before->second.offset < delivery.offset);
    }
    last[delivery.partition.value] = delivery;
  }
  const auto stored = run.fixture.stored(topic);
  REQUIRE(stored.size() == 300);
  for (const auto& delivery : run.deliveries) {
    const auto found = std::find_if(stored.begin(), stored.end(), [&](const StoredRecord& record) {
      return record.partition == delivery.partition.value && record.offset == delivery.offset.value;
    });
    REQUIRE(found != stored.end());
    CHECK(found->body == std::to_string(delivery.token));
  }
}

TEST_CASE_TEMPLATE_DEFINE("null and empty are told apart, in key and body", Fixture, broker_contract_null) {
  BrokerRun<Fixture> run;
  const auto topic = run.fixture.topic(1);
  const std::vector<std::pair<Text, Text>> pairs{
      {std::nullopt, std::nullopt}, {std::nullopt, ""}, {"", std::nullopt}, {"", ""}, {"k", "v"}};
  Messages messages;
  for (const auto& [key, body] : pairs) messages.push_back(std::make_unique<OwnedMessage>(topic, key, body));
  for (std::size_t i = 0; i < messages.size(); ++i) run.publish(*messages[i], i);
  run.await_reports(pairs.size());
  const auto stored = run.fixture.stored(topic);
  REQUIRE(stored.size() == pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    CHECK(stored[i].key == pairs[i].first);
    CHECK(stored[i].body == pairs[i].second);
  }
}

TEST_CASE_TEMPLATE_DEFINE("a token comes back as it was given, whatever its value", Fixture,
                          broker_contract_token) {
  BrokerRun<Fixture> run;
  const auto topic = run.fixture.topic(1);
  const auto messages = numbered(topic, 3);
  const std::vector<relay::Token> tokens{0, std::numeric_limits<relay::Token>::max(), 0x8000'0000'0000'0001};
  for (std::size_t i = 0; i < 3; ++i) run.publish(*messages[i], tokens[i]);
  run.await_reports(3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(run.deliveries[i].token == tokens[i]);
}

TEST_CASE_TEMPLATE_DEFINE("keys, bodies and headers of any bytes pass unchanged", Fixture,
                          broker_contract_bytes) {
  BrokerRun<Fixture> run;
  const auto topic = run.fixture.topic(1);
  std::string every_byte;
  for (int i = 1; i < 256; ++i) every_byte.push_back(static_cast<char>(i));
  const std::string long_text(1024, 'x');
  const TextHeaders headers{{"control\x01\x1f\x7f", "\x01\x02\t\n"},
                            {"h\xc3\xa9", "\xe6\x97\xa5\xe6\x9c\xac"},
                            {long_text, long_text},
                            {"empty", ""},
                            {"null", std::nullopt},
                            {"", "no name"},
                            {"traceparent", "00-1-2-01"}};
  const OwnedMessage odd{topic, every_byte, every_byte + std::string{"\0z", 2}, headers};
  const OwnedMessage large{topic, long_text, std::string(200'000, 'y')};  // beyond what librdkafka copies
  run.publish(odd, 0);
  run.publish(large, 1);
  run.await_reports(2);
  const auto stored = run.fixture.stored(topic);
  REQUIRE(stored.size() == 2);
  CHECK(stored[0].key == every_byte);
  CHECK(stored[0].body == every_byte + std::string{"\0z", 2});
  REQUIRE(stored[0].headers.size() >= headers.size());
  const auto more = static_cast<std::ptrdiff_t>(stored[0].headers.size() - headers.size());
  CHECK(TextHeaders(stored[0].headers.begin() + more, stored[0].headers.end()) == headers);
  CHECK(stored[1].key == long_text);
  CHECK(stored[1].body == std::string(200'000, 'y'));
}

TEST_CASE_TEMPLATE_DEFINE("a topic's facts are told, and a missing one is called missing and not made",
                          Fixture, broker_contract_look_up) {
  BrokerRun<Fixture> run;
  const auto facts = run.look_up(run.fixture.topic(5));
  CHECK(facts.state == relay::TopicState::present);
  CHECK(facts.partitions == 5);
  CHECK(facts.message_bytes_max >= 1'000'000);
  if (Fixture::topics_make_themselves) return;
  const auto missing = run.fixture.missing_topic();
  for (int i = 0; i < 2; ++i) {
    const auto none = run.look_up(missing);
    CHECK(none.state == relay::TopicState::missing);
    CHECK(!none.reason.empty());
  }
}

TEST_CASE_TEMPLATE_DEFINE("a purge reports each message once, delivered or unsent, and later ones go out",
                          Fixture, broker_contract_purge) {
  BrokerRun<Fixture> run;
  const auto topic = run.fixture.topic(2);
  const auto messages = numbered(topic, 501);
  for (std::size_t i = 0; i < 500; ++i) run.publish(*messages[i], i, static_cast<std::int32_t>(i % 2));
  run.inside = true;
  run.fixture.broker().purge();
  run.inside = false;
  run.await_reports(500);
  run.check_reported_once(500);
  for (const auto& delivery : run.deliveries) {
    if (!delivery.refusal) continue;
    CHECK(*delivery.refusal == relay::Refusal::unsent);
    CHECK(!delivery.reason.empty());
  }
  // The purge does not wait for the sending threads: what is published right after it may be dropped as well,
  // and is sent again, as the relay does. The token of each try is another.
  std::size_t tries = 0;
  do {
    run.publish(*messages[500], 500 + tries);
    run.await_reports(501 + tries);
  } while (run.deliveries.back().refusal == relay::Refusal::unsent && ++tries < 100);
  CHECK(!run.deliveries.back().refusal);
  CHECK(run.fatals.empty());
}

TEST_CASE_TEMPLATE_DEFINE("a restart reports what the old producer had, then answers, then works", Fixture,
                          broker_contract_restart) {
  BrokerRun<Fixture> run;
  const auto topic = run.fixture.topic(1);
  const auto messages = numbered(topic, 201);
  for (std::size_t i = 0; i < 200; ++i) run.publish(*messages[i], i);
  std::optional<std::size_t> reported_before;
  run.inside = true;
  run.fixture.broker().restart([&](const Status& status) {
    CHECK(!run.inside);
    CHECK(status.has_value());
    reported_before = run.deliveries.size();
  });
  run.inside = false;
  REQUIRE(run.fixture.until([&] { return reported_before.has_value(); }));
  CHECK(*reported_before == 200);
  run.check_reported_once(200);
  for (const auto& delivery : run.deliveries) {
    if (delivery.refusal) CHECK(*delivery.refusal == relay::Refusal::unsent);
  }
  run.publish(*messages[200], 200);
  run.await_reports(201);
  CHECK(!run.deliveries.back().refusal);
}

TEST_CASE_TEMPLATE_DEFINE("after a stop nothing comes any more", Fixture, broker_contract_stop) {
  BrokerRun<Fixture> run;
  const auto topic = run.fixture.topic(1);
  const auto messages = numbered(topic, 100);
  bool answered = false;
  for (std::size_t i = 0; i < 100; ++i) run.publish(*messages[i], i);
  run.fixture.broker().look_up(topic, [&](const Result<relay::TopicFacts>&) { answered = true; });
  run.fixture.broker().restart([&](const Status&) { answered = true; });
  run.fixture.broker().stop();
  const auto reported = run.deliveries.size();
  run.fixture.run_a_while();
  CHECK(run.deliveries.size() == reported);
  CHECK(!answered);
}

TEST_CASE_TEMPLATE_DEFINE("a name that no topic can have is refused for this message alone", Fixture,
                          broker_contract_name) {
  BrokerRun<Fixture> run;
  const OwnedMessage wrong{"no/topic name", "k", "v"};
  const auto answer = run.try_publish(wrong, 0);
  REQUIRE(!answer.has_value());
  CHECK(answer.error().disposition == Disposition::quarantine);
  const OwnedMessage right{run.fixture.topic(1), "k", "v"};
  run.publish(right, 1);
  run.await_reports(1);
  CHECK(!run.deliveries.back().refusal);
}

}  // namespace outbox::test

#define OUTBOX_BROKER_CONTRACT(Fixture)                        \
  TEST_CASE_TEMPLATE_INVOKE(broker_contract_order, Fixture);   \
  TEST_CASE_TEMPLATE_INVOKE(broker_contract_null, Fixture);    \
  TEST_CASE_TEMPLATE_INVOKE(broker_contract_token, Fixture);   \
  TEST_CASE_TEMPLATE_INVOKE(broker_contract_bytes, Fixture);   \
  TEST_CASE_TEMPLATE_INVOKE(broker_contract_look_up, Fixture); \
  TEST_CASE_TEMPLATE_INVOKE(broker_contract_purge, Fixture);   \
  TEST_CASE_TEMPLATE_INVOKE(broker_contract_restart, Fixture); \
  TEST_CASE_TEMPLATE_INVOKE(broker_contract_stop, Fixture);    \
  TEST_CASE_TEMPLATE_INVOKE(broker_contract_name, Fixture)
