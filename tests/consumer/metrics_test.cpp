// What a Consumer tells a monitoring system, and what Prometheus then shows.

#include "outbox/metrics.hpp"

#include <doctest/doctest.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <stdexcept>

#include "kafka_letters.hpp"
#include "outbox/prometheus.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/kafka.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

std::string exposed(const prometheus::Registry& registry) {
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

bool shows(const prometheus::Registry& registry, const std::string& line) {
  return exposed(registry).find(line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("the table of metrics has a row for each, in the order of the enum") {
  for (std::size_t i = 0; i < metric_rows.size(); ++i)
    CHECK(static_cast<std::size_t>(metric_rows[i].metric) == i);
}

TEST_CASE(
    "Prometheus shows each outcome, each retry, the batches, and the lag of each partition as it shrinks") {
  KafkaCluster& kafka = KafkaCluster::shared();
  const auto topic = kafka.new_topic("metrics", 2);
  ServiceDatabase db;
  std::vector<Letter> letters;
  for (int i = 0; i < 20; ++i) {
    letters.push_back(letter(v7(i / 2), "{}"));  // every second one is a copy
    letters.back().partition = (i / 2) % 2;
  }
  letters.push_back({.headers = {}});
  send(kafka.bootstrap(), topic, letters);
  prometheus::Registry registry;
  std::atomic<bool> broken = true;
  RunningConsumer consumer({.name = "ledger",
                            .postgres = db.database.uri(),
                            .kafka = {{"bootstrap.servers", kafka.bootstrap()}, {"group.id", topic}},
                            .topics = {topic},
                            .horizon_check = horizon_check(kafka),
                            .metrics = std::make_shared<PrometheusMetrics>(registry, "ledger"),
                            .log = [](std::string_view) {}},
                           [&](Transaction& tx, const Message& m) {
                             record_effect(tx, m);
                             if (broken && m.partition() == 1 && m.offset() == 2) throw Retry("not yet");
                           });
  const auto lag = [&](int partition, int messages) {
    return shows(registry, "outbox_consumer_lag{consumer=\"ledger\",partition=\"" +
                               std::to_string(partition) + "\",topic=\"" + topic + "\"} " +
                               std::to_string(messages));
  };
  eventually("the waiting partition lags, the other does not", [&] { return lag(1, 8) && lag(0, 0); });
  broken = false;
  eventually("nothing lags", [&] { return lag(1, 0) && lag(0, 0); });
  for (const auto* line :
       {"outcome=\"applied\"} 10", "outcome=\"duplicate\"} 10", "outcome=\"malformed\"} 1"})
    CHECK(shows(registry, std::string("outbox_consumer_messages_total{consumer=\"ledger\",") + line));
  CHECK(exposed(registry).find("outbox_consumer_retries_total{consumer=\"ledger\",why=\"failed\"}") !=
        std::string::npos);
  CHECK(exposed(registry).find("outbox_consumer_batch_seconds_count{consumer=\"ledger\"}") !=
        std::string::npos);
  CHECK(exposed(registry).find("outbox_consumer_batch_rows_bucket") != std::string::npos);
  consumer.stop();
  CHECK(exposed(registry).find("outbox_consumer_lag{") == std::string::npos);
}
