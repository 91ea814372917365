#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "relay/core/kafka/errors.hpp"

using namespace outbox;
using namespace outbox::relay;

namespace {

// What each code must mean, said a second time and by hand: a changed row fails here. `unsent` is sent again,
// `message` makes it dead, `topic` holds the topic, `producer` restarts the producer.
const std::map<Refusal, std::set<std::int32_t>> expected{
    {Refusal::unsent, {-199, -197, -196, -195, -193, -187, -185, -184, -181, -180, -169, -166, -153,
                       -152, -151, -1,   2,    5,    6,    7,    8,    9,    13,   14,   15,   16,
                       19,   20,   33,   34,   41,   51,   54,   56,   58,   60,   74,   75,   89}},
    {Refusal::message, {-186, 4, 10, 17, 18, 87}},
    {Refusal::topic, {-198, -190, -188, -165, 3, 29, 32, 35, 42, 43, 44, 76}},
    {Refusal::producer, {-194, -192, -172, -150, -149, -148, -144, 21, 31, 45, 46, 47, 48, 49, 53, 59, 90}},
};

}  // namespace

TEST_CASE("each row of the table means what it must, and there is no other row") {
  std::size_t rows = 0;
  for (const auto& [refusal, codes] : expected) {
    for (const auto code : codes) {
      CAPTURE(code);
      const auto& row = kafka_error(code);
      CHECK(row.code == code);
      CHECK(row.refusal == refusal);
      CHECK(!row.name.empty());
      ++rows;
    }
  }
  CHECK(kafka_errors().size() == rows);
}

TEST_CASE("an error that makes a message dead or holds a topic says what to do") {
  for (const auto& row : kafka_errors()) {
    if (row.refusal != Refusal::message && row.refusal != Refusal::topic) continue;
    CAPTURE(row.name);
    CHECK(!row.advice.empty());
  }
}

TEST_CASE("a passing error never gives a message up") {
  // Broker away, leader moving, throttled, too few replicas, time-outs, login refused: none may kill or hold.
  for (const std::int32_t code : {-195, -187, -185, -169, 5, 6, 7, 13, 19, 20, 56, 58, 74, 75, 89}) {
    CAPTURE(code);
    CHECK(kafka_error(code).refusal == Refusal::unsent);
    CHECK(to_error(code, "x").disposition == Disposition::retry);
  }
}

TEST_CASE("a code that nobody has thought of holds the topic: nothing is given up, nothing stops") {
  for (const std::int32_t code : {-300, -155, -2, 1, 12, 61, 98, 4711}) {
    CAPTURE(code);
    CHECK(kafka_error(code).refusal == Refusal::topic);
    CHECK(to_error(code, "x").code == "KAFKA " + std::to_string(code));
  }
}

TEST_CASE("a topic's error tells missing, forbidden and not yet known apart") {
  CHECK(topic_verdict(0).known);
  CHECK(topic_verdict(0).state == TopicState::present);
  for (const std::int32_t code : {3, -188, 17}) CHECK(topic_verdict(code).state == TopicState::missing);
  CHECK(topic_verdict(29).state == TopicState::forbidden);
  for (const std::int32_t code : {-195, -185, 5, -1, 4711}) CHECK(!topic_verdict(code).known);
}

TEST_CASE("an error's text names what failed, why, and what to do") {
  const auto error = to_error(10, "topic payments, partition 3", "Broker: Message size too large");
  CHECK(error.disposition == Disposition::quarantine);
  CHECK(error.text() ==
        "topic payments, partition 3: Broker: Message size too large (MSG_SIZE_TOO_LARGE); raise the topic's "
        "max.message.bytes and retry the message, or discard it");
}
