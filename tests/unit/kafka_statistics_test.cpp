#include <doctest/doctest.h>

#include <string>

#include "relay/kafka/statistics.hpp"

using namespace outbox;
using namespace outbox::relay;

namespace {

std::string broker(const std::string& name, int id, const std::string& more = "") {
  return "\"" + name + "/" + std::to_string(id) + R"(":{"nodename":")" + name + R"(","nodeid":)" +
         std::to_string(id) +
         R"(,"state":"UP","source":"learned","rtt":{"avg":1500,"p99":9000},"int_latency":{"p99":700},"waitresp_cnt":2,)"
         R"("txerrs":1,"rxerrs":2,"req_timeouts":3,"txretries":4,"connects":5)" +
         more + "}";
}

std::string statistics(const std::string& brokers) {
  return R"({"msg_cnt":7,"msg_size":800,"brokers":{)" + brokers +
         R"(},"topics":{"t":{"partitions":{"0":{"brokers":{"x":1}}}}}})";
}

}  // namespace

TEST_CASE(
    "what matters of librdkafka's statistics is taken, brokers by name, addresses and coordinators left "
    "out") {
  const auto read = parse_kafka_statistics(
      statistics(broker("b:9092", 2) + "," + broker("a:9092", 1) + "," + broker("bootstrap:9092", -1) + "," +
                 R"("GroupCoordinator":{"nodename":"a:9092","nodeid":1,"state":"UP","source":"logical"})"));
  REQUIRE(read);
  CHECK(read->queued_messages == 7);
  CHECK(read->queued_bytes == 800);
  REQUIRE(read->brokers.size() == 2);
  const BrokerStatistics& a = read->brokers.front();
  CHECK(a.name == "a:9092");
  CHECK(a.up);
  CHECK(a.round_trip_mean == Micros{1500});
  CHECK(a.round_trip_p99 == Micros{9000});
  CHECK(a.queued_p99 == Micros{700});
  CHECK(a.waiting_requests == 2);
  CHECK(a.request_errors == 3);
  CHECK(a.request_timeouts == 3);
  CHECK(a.request_retries == 4);
  CHECK(a.connects == 5);
}

TEST_CASE("brokers beyond the cap are told together, and all of them") {
  std::string many;
  for (int i = 0; i < 100; ++i)
    many += (many.empty() ? "" : ",") + broker("b" + std::to_string(1000 + i), i + 1);
  const auto read = parse_kafka_statistics(statistics(many));
  REQUIRE(read);
  CHECK(read->brokers.size() == brokers_told_max + 1);
  CHECK(read->brokers.back().name == other_brokers);
  CHECK(read->brokers.back().connects == 5 * (100 - static_cast<int>(brokers_told_max)));
}

TEST_CASE("what is no statistics is none, and what is missing counts as nothing") {
  for (const char* text : {"", "{", "[]", "{}", R"({"brokers":5})", "null"})
    CHECK_FALSE(parse_kafka_statistics(text));
  const auto read =
      parse_kafka_statistics(R"({"brokers":{"x":{"nodename":"x","nodeid":1},"y":5,"z":{"nodeid":1}}})");
  REQUIRE(read);
  CHECK(read->brokers.size() == 1);
  CHECK_FALSE(read->brokers.front().up);
}
